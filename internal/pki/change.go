package pki

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// changeFile is where a change of several files is while it is made. It holds
// keys, so that its name ends like theirs.
const changeFile = "change.key"

// change is what several files are to hold, all of them or none: nothing stands
// for a file that is to go.
type change map[string][]byte

// commit makes a change. Once its own file is there it is made, whatever happens
// to this process: who opens the keystore next does the rest.
func (f folder) commit(c change) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := f.write(changeFile, data); err != nil {
		return err
	}
	if err := f.finish(); err != nil {
		return fmt.Errorf("it counts from now on, although not all of its files could be written: %w; mend that, and the next start of the controller or netkeep keys rotate writes the rest", err)
	}
	return nil
}

// pending reads the change that is being made; nil if there is none.
func (f folder) pending() (change, error) {
	data, found, err := f.readOwn(changeFile)
	if err != nil || !found {
		return nil, err
	}
	var c change
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, f.problem(changeFile, fmt.Errorf("damaged: %w", err))
	}
	return c, nil
}

// finish does what is left of a change. The caller holds the folder's lock.
func (f folder) finish() error {
	c, err := f.pending()
	if err != nil || c == nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if len(c[name]) == 0 {
			err = f.remove(name)
		} else {
			err = f.write(name, c[name])
		}
		if err != nil {
			return err
		}
	}
	return f.remove(changeFile)
}
