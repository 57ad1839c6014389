package format

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Seal puts a stored value under a seal for its place, "<kind>/<id>/<member>",
// as kinds do with what they call sealed. What it returns can stand in a JSON
// string as it is.
type Seal func(place string, plain []byte) []byte

// sealMarks begin whatever is sealed. No value of before does.
var sealMarks = []string{`"sealed1.`, `"sealed2.`}

func isSealed(member []byte) bool {
	return slices.ContainsFunc(sealMarks, func(mark string) bool { return bytes.HasPrefix(member, []byte(mark)) })
}

// sealed are the members that have been sealed since format 3, by kind.
var sealed = map[string][]string{
	"enrollment": {"token", "jwt"},
	"mfa":        {"secret", "recoveryCodes"},
}

// sealStep seals what lets somebody in and was stored so that anybody could read
// it.
func sealStep(seal Seal) func(key string, value []byte) ([]byte, error) {
	return func(key string, value []byte) ([]byte, error) {
		kind, _, _ := strings.Cut(key, "/")
		members := sealed[kind]
		if members == nil {
			return value, nil
		}
		return eachMember(value, func(name string, member jsontext.Value) ([]byte, error) {
			if !slices.Contains(members, name) || isSealed(member) || member.Kind() == 'n' {
				return member, nil
			}
			if err := member.Compact(); err != nil {
				return nil, err
			}
			return append(append([]byte{'"'}, seal(key+"/"+name, member)...), '"'), nil
		})
	}
}

// eachMember returns an object with each member as change has it, without those
// that it has as nil. One of which none changes is returned as it is.
func eachMember(object []byte, change func(name string, member jsontext.Value) ([]byte, error)) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errors.Join(errors.New("it is no object"), err)
	}
	out, changed := []byte{'{'}, false
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		name = slices.Clone(name)
		text, err := jsontext.AppendUnquote(nil, name)
		if err != nil {
			return nil, err
		}
		member, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		is, err := change(string(text), slices.Clone(member))
		if err != nil {
			return nil, err
		}
		changed = changed || is == nil || !bytes.Equal(is, member)
		if is == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), is...)
	}
	if !changed {
		return object, nil
	}
	return append(out, '}'), nil
}
