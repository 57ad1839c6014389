package format

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Until format 5, an identity held what its client had last said of itself in two
// members. They have been a record of their own since, under the id of the
// identity.
var infoMembers = []string{"envInfo", "sdkInfo"}

// withoutInfo returns an identity without them.
func withoutInfo(key string, value []byte) ([]byte, error) {
	if _, is := identityAt(key); !is {
		return value, nil
	}
	return eachMember(value, func(name string, member jsontext.Value) ([]byte, error) {
		if slices.Contains(infoMembers, name) {
			return nil, nil
		}
		return member, nil
	})
}

// infoApart returns the record, if there is anything to say, with the times of the
// identity.
func infoApart(key string, value []byte) (map[string][]byte, error) {
	id, is := identityAt(key)
	if !is {
		return nil, nil
	}
	said := false
	record, err := eachMember(value, func(name string, member jsontext.Value) ([]byte, error) {
		switch {
		case slices.Contains([]string{"id", "createdAt", "updatedAt"}, name):
			return member, nil
		case slices.Contains(infoMembers, name):
			if err := member.Compact(); err != nil || member.Kind() != '{' || string(member) == "{}" {
				return nil, err
			}
			said = true
			return member, nil
		}
		return nil, nil
	})
	if err != nil || !said {
		return nil, err
	}
	owner, err := jsontext.AppendQuote([]byte(`,"identityId":`), id)
	record = append(append(record[:len(record)-1], owner...), '}')
	return map[string][]byte{"client-info/" + id: record}, err
}

// identityAt returns the id of the identity that a key names.
func identityAt(key string) (id string, is bool) { return strings.CutPrefix(key, "identity/") }
