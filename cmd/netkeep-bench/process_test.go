package main

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 123 77 0 0 20 0 9 0 100"
	for _, tt := range []struct {
		name, text string
		want       time.Duration
		fails      bool
	}{
		{"plain", "42 (netkeep)" + rest, 2 * time.Second, false},
		{"parentheses and spaces in the name", "42 (a) b (c))" + rest, 2 * time.Second, false},
		{"short", "42 (netkeep) S 1 2", 0, true},
		{"empty", "", 0, true},
		{"no number", "42 (netkeep) S 1 2 3 4 5 6 7 8 9 10 x 77", 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseStat(tt.text)
			if (err != nil) != tt.fails || err == nil && got != tt.want {
				t.Errorf("parseStat = %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestParseSmaps(t *testing.T) {
	rss, anonymous, err := parseSmaps("55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:   2048 kB\nPss: 1 kB\nAnonymous:   1024 kB\nLazyFree: 5 kB\n")
	if err != nil || rss != 2048 || anonymous != 1024 {
		t.Errorf("parseSmaps = %d, %d, %v; want 2048, 1024", rss, anonymous, err)
	}
	for _, bad := range []string{"", "Rss: 2048 kB\n", "Rss: x kB\nAnonymous: 1 kB\n"} {
		if _, _, err := parseSmaps(bad); err == nil {
			t.Errorf("parseSmaps(%q) does not fail", bad)
		}
	}
}

func TestNoProcess(t *testing.T) {
	p, err := openProcess(0)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := p.begin()(1); u != nil || err != nil {
		t.Errorf("no process used %v, %v", u, err)
	}
	if _, err := openProcess(-1); err == nil {
		t.Error("a process that cannot be is opened")
	}
}
