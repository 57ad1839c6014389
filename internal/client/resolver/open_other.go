//go:build !linux && !darwin && !windows

package resolver

import (
	"context"
	"errors"
)

func open(context.Context, Options) (way, error) {
	return nil, errors.New("names of services are told to the resolver on Linux, macOS and Windows alone: on this system, let it ask the tunneler's server for them")
}
