package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"netkeep.internal/internal/lang/document"
	"netkeep.internal/internal/lang/spell"
)

// Webhook is one who is sent alerts.
type Webhook struct {
	Name       string
	URL        string
	SecretFile string
	CA         string
	On         []string
}

// The keys of a webhook.
const (
	webhookName   = "name"
	webhookURL    = "url"
	webhookSecret = "secretFile"
	webhookCA     = "ca"
	webhookOn     = "on"
)

var webhookKeys = []string{webhookName, webhookURL, webhookSecret, webhookCA, webhookOn}

// maxWebhooks is how many there may be.
const maxWebhooks = 16

// webhooksOf reads a list of webhooks.
func webhooksOf(node ast.Node) ([]Webhook, error) {
	var items []ast.Node
	switch n := node.(type) {
	case nil, *ast.NullNode:
		return nil, nil
	case *ast.SequenceNode:
		items = n.Values
	default:
		return nil, fmt.Errorf("must be a list, not %s", describe(node))
	}
	var all []Webhook
	for i, item := range items {
		hook, err := webhookOf(item)
		if err != nil {
			return nil, fmt.Errorf("number %d %w", i+1, err)
		}
		all = append(all, hook)
	}
	return all, nil
}

func webhookOf(node ast.Node) (hook Webhook, err error) {
	var pairs []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = append(pairs, n)
	default:
		return hook, fmt.Errorf("must have keys with values, such as url and secretFile, not be %s", describe(node))
	}
	seen := map[string]bool{}
	for _, pair := range pairs {
		key := textOf(pair.Key)
		if seen[key] {
			return hook, fmt.Errorf("has %s twice", excerpt(key))
		}
		seen[key] = true
		if err := hook.set(key, pair.Value); err != nil {
			return hook, err
		}
	}
	if u, err := url.Parse(hook.URL); hook.Name == "" && err == nil {
		hook.Name = u.Hostname()
	}
	return hook, nil
}

func (h *Webhook) set(key string, value ast.Node) error {
	if key == webhookOn {
		list, ok := value.(*ast.SequenceNode)
		if !ok {
			return fmt.Errorf("must have a list of events as %s, such as [router-offline, disk-low], not %s", key, describe(value))
		}
		h.On = []string{}
		for _, item := range list.Values {
			text, ok := scalar(item)
			if !ok {
				return fmt.Errorf("must have names of events in %s, not %s", key, describe(item))
			}
			h.On = append(h.On, text)
		}
		return nil
	}
	text, ok := scalar(value)
	if !ok {
		return fmt.Errorf("must have a text as %s, not %s", excerpt(key), describe(value))
	}
	switch key {
	case webhookName:
		h.Name = text
	case webhookURL:
		h.URL = text
	case webhookSecret:
		h.SecretFile = text
	case webhookCA:
		h.CA = text
	default:
		return fmt.Errorf("has an unknown key %q; the nearest known is %s", excerpt(key), spell.Nearest(key, webhookKeys))
	}
	return nil
}

// parseWebhooks reads a list of webhooks from a text, which is YAML too.
func parseWebhooks(text string) ([]Webhook, error) {
	f, err := document.Parse([]byte(text))
	if err != nil {
		return nil, errors.New("is no YAML")
	}
	for _, doc := range f.Docs {
		if doc.Body != nil {
			return webhooksOf(doc.Body)
		}
	}
	return nil, nil
}

// checkWebhooks says what is wrong with webhooks.
func checkWebhooks(all []Webhook) error {
	if len(all) > maxWebhooks {
		return fmt.Errorf("has %d, and there may be %d", len(all), maxWebhooks)
	}
	var names []string
	for i, h := range all {
		switch fail := func(format string, args ...any) error {
			return fmt.Errorf("number %d %w", i+1, fmt.Errorf(format, args...))
		}; {
		case !isURL(h.URL):
			return fail("must have a URL without a user name as url, such as https://hooks.example.org/netkeep")
		case h.SecretFile == "":
			return fail("must have a secretFile, with which alerts are signed, such as /etc/netkeep/hook.secret: openssl rand -hex 32 writes one")
		case !isName(h.Name):
			return fail("must have a name of letters, digits, dots and dashes, not %q", excerpt(h.Name))
		case slices.Contains(names, h.Name):
			return fail("is called %s like another: give each a name of its own", h.Name)
		case h.On != nil && len(h.On) == 0:
			return fail("has no event in on; leave it out for the usual ones")
		}
		names = append(names, h.Name)
	}
	return nil
}

// isName reports whether a text can name a webhook on a command line and in a path.
func isName(s string) bool {
	return s != "" && len(s) <= maxWord && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_'
	})
}

// webhooksText is webhooks as they stand in a file.
func webhooksText(all []Webhook) string {
	if len(all) == 0 {
		return ""
	}
	var items []string
	for _, h := range all {
		var members []string
		for _, m := range []struct{ key, value string }{{webhookName, h.Name}, {webhookURL, h.URL}, {webhookSecret, h.SecretFile}, {webhookCA, h.CA}} {
			if m.value != "" {
				members = append(members, m.key+": "+quote(m.value))
			}
		}
		if h.On != nil {
			var on []string
			for _, event := range h.On {
				on = append(on, quote(event))
			}
			members = append(members, webhookOn+": ["+strings.Join(on, ", ")+"]")
		}
		items = append(items, "{"+strings.Join(members, ", ")+"}")
	}
	return "[" + strings.Join(items, ", ") + "]"
}
