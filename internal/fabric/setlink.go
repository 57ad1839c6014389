package fabric

import (
	"context"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/fabric/link"
	"netkeep.internal/internal/fabric/seam"
)

// askLink is what a question to other controllers begins with of which the rest is what
// is to become of a link.
const askLink = "link "

// linkWord is what becomes of a link, as controllers tell each other.
type linkWord struct {
	ID  string       `json:"id"`
	End bool         `json:"end,omitempty"`
	Set *link.Change `json:"set,omitempty"`
}

// ended is why links go that somebody ends.
const ended = "somebody has ended it"

// linkWords does to a link what somebody says, under all ids that this controller
// answers under; it reports false if there is none.
func (f *Fabric) linkWords(word linkWord) (found bool) {
	for _, f := range f.both() {
		switch {
		case word.End:
			found = f.Links.End(word.ID, ended) || found
		case word.Set != nil:
			found = f.Links.Set(word.ID, *word.Set) || found
		}
	}
	return found
}

// askedLink does what another controller was told. Each knows of the links of the
// routers that are connected to it.
func (f *Fabric) askedLink(text string) {
	var word linkWord
	if json.Unmarshal([]byte(text), &word) == nil {
		f.linkWords(word)
	}
}

func (v view) SetLink(ctx context.Context, id string, with seam.LinkChange) (bool, error) {
	change := link.Change(with)
	return v.changeLink(ctx, linkWord{ID: id, Set: &change})
}

func (v view) EndLink(ctx context.Context, id string) (bool, error) {
	return v.changeLink(ctx, linkWord{ID: id, End: true})
}

// changeLink does it here and has the others do it.
func (v view) changeLink(ctx context.Context, word linkWord) (bool, error) {
	if found := v.fabric.linkWords(word); !found || v.fabric.opt.Alone {
		return found, nil
	}
	text, err := json.Marshal(word)
	if err != nil {
		return true, err
	}
	_, err = v.fabric.opt.Ask(ctx, askLink+string(text))
	return true, err
}
