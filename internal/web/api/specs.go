package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/filter"
	"netkeep/internal/lang/kind"
	"netkeep/internal/web/rest"
)

// Specs is the specification documents of both APIs, in the order in which
// they are listed. They are added once all operations are.
type Specs struct {
	list []spec
}

// spec is one document in both of its forms.
type spec struct {
	name       string
	made       time.Time
	json, yaml []byte
}

// Add writes the specification of an API.
func (s *Specs) Add(a *rest.API, made time.Time) error {
	doc, err := a.Spec()
	if err != nil {
		return err
	}
	text, err := yaml.JSONToYAML(doc)
	if err != nil {
		return err
	}
	s.list = append(s.list, spec{a.Name, made, doc, text})
	return nil
}

// specOut is a specification in lists.
type specOut struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Tags      kind.Tags `json:"tags"`
	Links     specLinks `json:"_links"`
}

type specLinks struct {
	Self href `json:"self"`
	Spec href `json:"spec"`
}

type href struct {
	Href string `json:"href"`
}

var specOutput = kind.NewOutput[specOut]()

func (s spec) out() specOut {
	self := "./specs/" + s.name
	return specOut{
		ID: s.name, Name: s.name, CreatedAt: s.made, UpdatedAt: s.made,
		Links: specLinks{Self: href{self}, Spec: href{self + "/spec"}},
	}
}

func mountSpecs(a *rest.API, s *Service) {
	op := func(path, name, doc string) rest.Op {
		return rest.Op{Method: http.MethodGet, Path: path, Name: name, Tag: "informational", Doc: doc, Auth: rest.Anonymous}
	}
	rest.Handle(a, op("/specs", "listSpecs", "List the API specifications."), func(*rest.Call, rest.None) (rest.List, error) {
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
		if strings.Contains(c.Request.Header.Get("Accept"), "application/json") {
			return rest.File{Type: "application/json", Body: sp.json}, err
		}
		return rest.File{Type: "text/yaml", Body: sp.yaml}, err
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
