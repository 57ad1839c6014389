package schema

import (
	"fmt"
	"strings"
	"testing"
)

func TestInstructions(t *testing.T) {
	for _, expr := range []string{"", "a", "abc", "[a-z]", "a{3}", "(ab){10,20}", "((ab){3}c){4}", "a|b|cd", "^(a+)?$", "(?i)abc"} {
		p, err := compilePattern(expr)
		if err != nil {
			t.Errorf("compilePattern(%q): %v", expr, err)
			continue
		}
		if size := p.(*pattern).size; size < 1 || size > 10*(1+len(expr))*20 {
			t.Errorf("size of %q = %d", expr, size)
		}
	}
	for _, expr := range []string{"a{1000}a{1000}a{1000}", "((((abcde){10}){10}){10})", strings.Repeat("[a-z]", maxPattern+1)} {
		if _, err := compilePattern(expr); err == nil {
			t.Errorf("compilePattern(%.20q) of %d bytes: no error", expr, len(expr))
		}
	}
}

func TestFormats(t *testing.T) {
	tests := []struct {
		format    string
		good, bad []any
	}{
		{"ipv4", []any{"0.0.0.0", "255.255.255.255", 5, nil}, []any{"", "+1.2.3.4", "-0.1.2.3", "1.2.3", "1.2.3.256", "01.2.3.4", "::1"}},
		{"ipv6", []any{"::", "2001:db8::1"}, []any{"", "1.2.3.4", "fe80::1%eth0", ":::"}},
		{"cidr", []any{"0.0.0.0/0", "10.1.2.3/8", "::/0", "2001:db8::/128", true}, []any{"", "10.0.0.0", "10.0.0.0/33", "::/129", "/8", "10.0.0.0/08"}},
		{"uuid", []any{"f2dd2df0-9c04-4b84-a91e-71437ac229f1"}, []any{"f2dd2df0"}},
		{"uri", []any{"https://example.com/a"}, []any{"a"}},
		{"date-time", []any{"2024-02-29T12:00:00Z"}, []any{"2023-02-29T12:00:00Z"}},
		{"regex", []any{"^a$"}, []any{"("}},
	}
	for _, tt := range tests {
		s := compiled(t, fmt.Sprintf(`{"type": "object", "properties": {"a": {"format": %q}}}`, tt.format))
		for _, v := range tt.good {
			if err := s.Accepts("data", map[string]any{"a": v}); err != nil {
				t.Errorf("%s of %v: %v", tt.format, v, err)
			}
		}
		for _, v := range tt.bad {
			if err := s.Accepts("data", map[string]any{"a": v}); err == nil {
				t.Errorf("%s of %v: no error", tt.format, v)
			}
		}
	}
}
