//go:build !linux

package resolver

import "context"

func open(context.Context, Options) (way, error) { return nil, errOther }
