package home

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/router/uplink"
)

// register is the controllers that the router was told of, as its file has them:
// a router that starts finds all of them, although the one that it was enrolled
// at is gone.
type register struct {
	// From are the addresses of the identity that the list belongs to: who gives
	// the router others means those.
	From        []string            `json:"from"`
	Controllers []uplink.Controller `json:"controllers"`
}

// known are the controllers that the router was told of, if it was. What cannot
// be read is no reason not to run: the identity has addresses too.
func (s *Station) known(from []string) []uplink.Controller {
	text, err := readFile(s.path(listFile))
	var r register
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		s.opt.Log.Warn("the list of controllers cannot be read; the addresses of the identity are tried", "file", s.path(listFile), "error", err)
		return nil
	case !slices.Equal(r.From, from):
		return nil
	}
	return uplink.Checked(r.Controllers)
}

// keepList writes down which controllers there are.
func (s *Station) keepList(from []string, list []uplink.Controller) {
	err := s.writeList(register{from, list})
	if err != nil {
		s.opt.Log.Warn("the list of controllers could not be written down; after a restart the router may not find all", "file", s.path(listFile), "error", err)
	}
}

func (s *Station) writeList(r register) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	to, err := disk.NewFile(s.path(listFile), true)
	if err != nil {
		return err
	}
	defer to.Close()
	return to.Write(append(text, '\n'))
}
