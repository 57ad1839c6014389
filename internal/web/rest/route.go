package rest

import (
	"fmt"
	"net/http"
	"strings"
)

// node is one step of a path.
type node struct {
	next  map[string]*node
	param *node // any text; its name is in the operation's path
	ops   map[string]*operation
}

// add files the operation under its path. It panics if the place is taken.
func (n *node) add(o *operation) {
	for part := range strings.SplitSeq(strings.Trim(o.Path, "/"), "/") {
		if strings.HasPrefix(part, "{") {
			if n.param == nil {
				n.param = &node{}
			}
			n = n.param
			continue
		}
		if n.next == nil {
			n.next = map[string]*node{}
		}
		if n.next[part] == nil {
			n.next[part] = &node{}
		}
		n = n.next[part]
	}
	if n.ops == nil {
		n.ops = map[string]*operation{}
	}
	if n.ops[o.Method] != nil {
		panic(fmt.Sprintf("rest: %s %s is declared twice", o.Method, o.Path))
	}
	n.ops[o.Method] = o
}

// find returns the operations of a path and the values of its parameters.
func (n *node) find(path string) (ops map[string]*operation, params []string) {
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		switch {
		case n.next[part] != nil:
			n = n.next[part]
		case n.param != nil && part != "":
			n = n.param
			params = append(params, part)
		default:
			return nil, nil
		}
	}
	return n.ops, params
}

// methodOf is the method under which a request's operation is filed: HEAD is
// answered as GET without a body.
func methodOf(r *http.Request) string {
	if r.Method == http.MethodHead {
		return http.MethodGet
	}
	return r.Method
}
