package command

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/screen"
)

// roll is a list of what is no record: it has names, and the answer is all there is.
type roll struct {
	path    string
	columns []column
	none    string // what is said where there is nothing
}

// read returns what is in the list.
func (r roll) read(cmd *cobra.Command, s *session) (recs []record, err error) {
	_, err = s.Each(cmd.Context(), remote.List{Path: r.path}, func(raw jsontext.Value) error {
		rec, err := readRecord(raw)
		recs = append(recs, rec)
		return err
	})
	return recs, err
}

// write prints the list in a form, and returns what a table of it shows.
func (r roll) write(cmd *cobra.Command, s *session, form string) (shown []record, err error) {
	if form == formJSON || form == formYAML {
		var raw jsontext.Value
		if err := s.Get(cmd.Context(), r.path, nil, &raw); err != nil {
			return nil, err
		}
		return nil, s.raw(form, raw)
	}
	recs, err := r.read(cmd, s)
	switch {
	case err != nil:
		return nil, err
	case form == formName:
		for _, rec := range recs {
			s.Printf("%s\n", screen.Plain(rec.text("name")))
		}
		return nil, nil
	case len(recs) == 0:
		s.Notef("%s", r.none)
		return nil, nil
	}
	return recs, s.Write(rows(r.columns, recs))
}
