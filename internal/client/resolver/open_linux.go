package resolver

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// open takes systemd-resolved if it runs and programs ask it. A resolv.conf that
// it has no part in is what programs go by, and what it goes by itself.
func open(ctx context.Context, opt Options) (way, error) {
	f := newFile(opt)
	if err := f.mend(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(opt.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(opt.Path, err)
	}
	servers := read(text).servers
	if !slices.ContainsFunc(servers, isStub) {
		return f, nil
	}
	d := &resolved{opt: opt}
	if d.runs(ctx) {
		return d, nil
	}
	return f, nil
}
