package filter

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/lang/fault"
)

// TestScripts runs testdata/*.txt. The lines of a script are
//
//	# a comment
//	row {...}      an item, in JSON; it is known to all later queries
//	query ...      a text, to the end of the line
//	sort ...       the sort query parameter of the query above
//	want a b       the ids that the query selects, in its order; none if none
//	page a b of 7  the page that it asks for, and the total
//	fail ...       its refusal, or a part of it
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("scripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := script{t: t}
			for i, line := range strings.Split(string(data), "\n") {
				s.where = fmt.Sprintf("%s:%d", file, i+1)
				s.line(line)
			}
			s.settle()
			if s.checks == 0 {
				t.Error("the script checks nothing")
			}
		})
	}
}

// script is the state of a running script.
type script struct {
	t      *testing.T
	where  string
	rows   []*item
	text   string
	query  *Query[*item]
	err    error
	open   bool // the query above has not been checked
	code   fault.Code
	checks int
}

func (s *script) line(line string) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch word {
	case "", "#":
	case "row":
		row := new(item)
		if err := json.Unmarshal([]byte(rest), row); err != nil {
			s.t.Fatalf("%s: %v", s.where, err)
		}
		s.rows = append(s.rows, row)
	case "query":
		s.settle()
		s.text, s.open, s.code = rest, true, fault.CodeFilter
		s.query, s.err = Compile(itemSchema, rest)
	case "sort":
		if s.err == nil {
			s.code = fault.CodeSort
			s.query, s.err = s.query.SortedBy(rest)
		}
	case "want", "page", "fail":
		s.open = false
		s.checks++
		s.check(word, rest)
	default:
		s.t.Fatalf("%s: unknown line", s.where)
	}
}

// settle fails if a query was never checked.
func (s *script) settle() {
	if s.open {
		s.t.Errorf("before %s: nothing is expected of %s", s.where, s.text)
	}
}

func (s *script) check(word, expected string) {
	if word == "fail" {
		if !fault.Is(s.err, s.code) || !strings.Contains(s.err.Error(), expected) {
			s.t.Errorf("%s: %s\ngot  %v\nwant %s", s.where, s.text, s.err, expected)
		}
		return
	}
	if s.err != nil {
		s.t.Errorf("%s: %s\n%v", s.where, s.text, s.err)
		return
	}
	page := Page{Limit: noLimit, Unlimited: true}
	if word == "page" {
		page = s.query.Page(nil, nil)
	}
	rows, total := s.query.Select(Rows[*item]{Seq: slices.Values(s.rows)}, page)
	got := strings.Join(ids(rows), " ")
	if got == "" {
		got = "none"
	}
	if word == "page" {
		got += fmt.Sprintf(" of %d", total)
	}
	if got != expected {
		s.t.Errorf("%s: %s\ngot  %s\nwant %s", s.where, s.text, got, expected)
	}
}

func ids(rows []*item) []string {
	var list []string
	for _, row := range rows {
		list = append(list, row.ID)
	}
	return list
}
