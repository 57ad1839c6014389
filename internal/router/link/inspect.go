package link

import "encoding/json"

// Inspect is the links as JSON, under the names that controllers look for when
// they ask a router for its "links".
func (l *Links) Inspect() string {
	type link struct {
		ID        string `json:"id"`
		Iteration uint32 `json:"iteration"`
		Key       string `json:"key"`
		Split     bool   `json:"split"`
		Protocol  string `json:"protocol"`
		Address   string `json:"dialAddress"`
		Peer      string `json:"dest"`
		Version   string `json:"destVersion"`
		Dialled   bool   `json:"dialed"`
	}
	links := []link{}
	for _, k := range l.All() {
		links = append(links, link{k.id, k.iteration, k.key, len(k.parts().acks) > 0, k.protocol, k.address, k.peer, k.version, k.dialled})
	}
	text, err := json.Marshal(map[string]any{"links": links})
	if err != nil {
		return `{"links":[]}` // texts and numbers always become JSON
	}
	return string(text)
}
