package api

import (
	"net/http"
	"sync"
	"time"

	"netkeep.internal/internal/lang/document"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/web/rest"
)

// Specs is the specification documents of both APIs, in the order in which
// they are listed. They are added once all operations are.
type Specs struct {
	list []spec
}

// spec is one document in both of its forms. That in YAML is written when somebody
// first asks for it: few do, and it would take most of a controller's start.
type spec struct {
	name string
	made time.Time
	json []byte
	yaml func() ([]byte, error)
}

// Add writes the specification of an API.
func (s *Specs) Add(a *rest.API, made time.Time) error {
	doc, err := a.Spec()
	if err != nil {
		return err
	}
	s.list = append(s.list, spec{a.Name, made, doc, sync.OnceValues(func() ([]byte, error) { return document.YAML(doc) })})
	return nil
}

// specOut is a specification in lists.
type specOut struct {
	ID        string    `json:"id" doc:"Id of the specification."`
	Name      string    `json:"name" doc:"The same as the id."`
	CreatedAt time.Time `json:"createdAt" doc:"When the controller started."`
	UpdatedAt time.Time `json:"updatedAt" doc:"When the controller started."`
	Tags      kind.Tags `json:"tags" doc:"Always empty."`
	Links     specLinks `json:"_links" doc:"Where the specification is."`
}

type specLinks struct {
	kind.Links
	Spec kind.Link `json:"spec" doc:"The document itself."`
}

var specOutput = kind.NewOutput[specOut]()

func (s spec) out() specOut {
	self := "./specs/" + s.name
	return specOut{
		ID: s.name, Name: s.name, CreatedAt: s.made, UpdatedAt: s.made,
		Links: specLinks{kind.SelfAt(self), kind.Link{Href: self + "/spec"}},
	}
}

func mountSpecs(a *rest.API, s *Service) {
	op := func(path, name, doc string) rest.Op {
		return rest.Op{Method: http.MethodGet, Path: path, Name: name, Tag: "informational", Doc: doc, Auth: rest.Anonymous}
	}
	list := op("/specs", "listSpecs", "List the API specifications.")
	list.Entries = specOutput.Schema()
	rest.Handle(a, list, func(*rest.Call, rest.None) (rest.List, error) {
		list := s.Specs.list
		return rest.List{
			Page: filter.Page{Limit: filter.DefaultLimit}, Total: int64(len(list)), Fields: []string{}, Len: len(list),
			Append: func(dst []byte, i int) []byte {
				out := list[i].out()
				return specOutput.Append(dst, &out)
			},
		}, nil
	})
	rest.Handle(a, op("/specs/{id}", "detailSpec", "Get one of the API specifications."), func(c *rest.Call, _ rest.None) (specOut, error) {
		sp, err := s.Specs.find(c.Param("id"))
		return sp.out(), err
	})
	document := op("/specs/{id}/spec", "detailSpecBody", "Get the specification document itself.")
	document.Types = []string{"text/yaml", "application/json"}
	rest.Handle(a, document, func(c *rest.Call, _ rest.None) (rest.File, error) {
		sp, err := s.Specs.find(c.Param("id"))
		if err != nil || c.Accepts("application/json") {
			return rest.File{Type: "application/json", Body: sp.json}, err
		}
		text, err := sp.yaml()
		return rest.File{Type: "text/yaml", Body: text}, err
	})
	swagger := op("/swagger.json", "getSwagger", "Get the specification of this API as JSON.")
	swagger.Types = []string{"application/json"}
	rest.Handle(a, swagger, func(*rest.Call, rest.None) (rest.File, error) {
		sp, err := s.Specs.find(a.Name)
		return rest.File{Type: "application/json", Body: sp.json}, err
	})
}

func (s *Specs) find(id string) (spec, error) {
	for _, sp := range s.list {
		if sp.name == id {
			return sp, nil
		}
	}
	return spec{}, fault.NotFound("specification", id)
}
