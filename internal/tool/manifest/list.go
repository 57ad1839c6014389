package manifest

import (
	"context"
	"errors"
	"sync"

	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
)

// list asks for all records of a kind.
func (n *Network) list(ctx context.Context, from Source, d *kind.Def) ([]*value, error) {
	if !d.Verbs.Has(kind.Lists) {
		return n.listBelow(ctx, from, d)
	}
	return answers(ctx, from, d.Path)
}

func answers(ctx context.Context, from Source, path string) ([]*value, error) {
	raws, err := from.List(ctx, path)
	if err != nil {
		return nil, err
	}
	all := make([]*value, len(raws))
	for i, raw := range raws {
		if all[i], err = fromJSON(raw); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// atOnce is how many lists are asked for at a time.
const atOnce = 8

// listBelow asks for the records of a kind that has no list of its own, below
// each of the identities that they belong to.
func (n *Network) listBelow(ctx context.Context, from Source, d *kind.Def) ([]*value, error) {
	owners := n.sorted(model.Identities.Def)
	found, errs := make([][]*value, len(owners)), make([]error, len(owners))
	places := make(chan struct{}, atOnce)
	var work sync.WaitGroup
	for i, owner := range owners {
		places <- struct{}{}
		work.Go(func() {
			defer func() { <-places }()
			found[i], errs[i] = answers(ctx, from, owner.def.Path+"/"+owner.id+"/"+d.Path)
		})
	}
	work.Wait()
	var all []*value
	for i, owner := range owners {
		for _, v := range found[i] {
			config := n.shelves[model.Configs.Def].byID[v.said("configId")]
			if config == nil {
				continue // it went between two lists
			}
			id := model.ServiceConfigID(owner.id, v.said("serviceId"), config.sent.said("configTypeId"))
			v.members = append(v.members, member{name: "id", value: textValue(id)}, member{name: "identityId", value: textValue(owner.id)})
			all = append(all, v)
		}
	}
	return all, errors.Join(errs...)
}

func textValue(text string) *value { return &value{scalar: quote(nil, text)} }
