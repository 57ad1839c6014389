package rest

import (
	"netkeep.internal/internal/lang/kind"
)

// Link is an address that an answer leads to, relative to the API's root.
type Link struct{ Name, Href string }

// Links is where an answer leads whose record is not at the path of its kind,
// or whose links depend on it.
func Links(of func(rec kind.Record) []Link) Derived {
	return linksColumn(func(dst []byte, rec kind.Record) []byte {
		dst = append(dst, '{')
		for _, l := range of(rec) {
			dst = kind.AppendMember(dst, l.Name, func(dst []byte) []byte {
				dst = append(dst, `{"href":`...)
				return append(kind.AppendText(dst, "./"+l.Href), '}')
			})
		}
		return append(dst, '}')
	})
}

func linksColumn(add func(dst []byte, rec kind.Record) []byte) Derived {
	return Derived{Name: "_links", Schema: kind.RefTo("links"), Append: func(dst []byte, _ *Call, rec kind.Record) []byte {
		return add(dst, rec)
	}}
}

// appendLinks adds where a record is, its parts, and what it refers to.
func appendLinks(dst []byte, d *kind.Def, leads []kind.Lead, rec kind.Record) []byte {
	dst = append(dst, `{"self":{"href":`...)
	start := len(dst)
	dst = kind.AppendText(dst, "./"+d.Path+"/"+rec.Base().ID)
	self := dst[start : len(dst)-1] // without the last quote; dst only grows
	dst = append(dst, '}')
	for _, sub := range d.Links { // plain words, all of them
		dst = append(dst, ',', '"')
		dst = append(dst, sub...)
		dst = append(dst, `":{"href":`...)
		dst = append(dst, self...)
		dst = append(dst, '/')
		dst = append(dst, sub...)
		dst = append(dst, '"', '}')
	}
	for _, lead := range leads {
		if id := lead.ID(rec); id != "" {
			dst = append(dst, ',', '"')
			dst = append(dst, lead.Path...)
			dst = append(dst, `":{"href":`...)
			dst = append(kind.AppendText(dst, "./"+lead.Path+"/"+id), '}')
		}
	}
	return append(dst, '}')
}
