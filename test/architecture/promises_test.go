package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)`(?: in `([a-z0-9/]+)`)?")
	writtenTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)\(`)
)

// tests are all that there are: in which directories, by name.
func tests(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, dir := range []string{"cmd", "internal", "overlay", "test", "tools"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			in := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
			for _, found := range writtenTest.FindAllSubmatch(text, -1) {
				all[string(found[1])] = append(all[string(found[1])], in)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestPromises holds the documents to the tests that they name: each is there.
func TestPromises(t *testing.T) {
	all := tests(t)
	var pages []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/adr/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	named := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range namedTest.FindAllStringSubmatch(string(text), -1) {
			name, in := found[1], found[2]
			if named++; all[name] == nil || in != "" && !slices.Contains(all[name], in) {
				t.Errorf("%s names %s, which there is not", page, found[0])
			}
		}
	}
	if named < 20 {
		t.Errorf("the documents name %d tests", named)
	}
}

// chosenTest is a test that is chosen by its name.
var chosenTest = regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]*`)

// TestChosen holds what runs tests to the names by which it chooses some: a name that
// nothing has any more would choose nothing, and nobody would see it.
func TestChosen(t *testing.T) {
	all := tests(t)
	for _, file := range []string{"../../Makefile", "../../.ci/run"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := chosenTest.FindAllString(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s chooses none", file)
		}
		for _, name := range found {
			if all[name] == nil {
				t.Errorf("%s chooses %s, which there is not", file, name)
			}
		}
	}
}

// table is one of a page: its head, and its rows.
type table struct {
	head []string
	rows [][]string
}

// tables are those below a heading of a page.
func tables(t *testing.T, page, heading string) (all []table) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	inside := false
	for line := range strings.Lines(section) {
		was := inside
		if inside = strings.HasPrefix(line, "|"); !inside || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !was {
			all = append(all, table{head: cells})
			continue
		}
		last := &all[len(all)-1]
		last.rows = append(last.rows, cells)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no table below %q", page, heading)
	}
	return all
}

// numbered are tests that are named after what others have published. They are of one
// thing, in however many packages.
var numbered = regexp.MustCompile(`^Test(GHSA_|Ziti\d)`)

// TestNoOtherOfThatName holds the tables of what went wrong to say which test they mean,
// where several have its name: if it went, one that is about something else would do.
func TestNoOtherOfThatName(t *testing.T) {
	all := tests(t)
	for page, headings := range map[string][]string{
		"security.md":     {"What a router that turned bad can do", "What was once wrong"},
		"reliability.md":  {"What was once wrong"},
		"architecture.md": {"What was once wrong"},
		"weaknesses.md":   {"What went wrong elsewhere"},
	} {
		for _, heading := range headings {
			for _, table := range tables(t, page, heading) {
				for _, cells := range table.rows {
					for _, found := range namedTest.FindAllStringSubmatch(strings.Join(cells, "|"), -1) {
						name, in := found[1], found[2]
						if places := slices.Compact(all[name]); in == "" && len(places) > 1 && !numbered.MatchString(name) {
							t.Errorf("%s does not say in which of %q the %s is that it means", page, places, name)
						}
					}
				}
			}
		}
	}
}

// TestEveryCell holds the page on security to its word on routers that turned
// bad: every cell of its tables names a test.
func TestEveryCell(t *testing.T) {
	rows := 0
	for _, table := range tables(t, "security.md", "What a router that turned bad can do") {
		if table.head[len(table.head)-1] == "another server" { // figures, of a test that the text names
			continue
		}
		for _, cells := range table.rows {
			rows++
			for i, cell := range cells[1:] {
				if title := table.head[i+1]; title != "once" && !namedTest.MatchString(cell) {
					t.Errorf("of %q the column %q names no test: %s", cells[0], title, cell)
				}
			}
		}
	}
	if rows < 10 {
		t.Errorf("there are %d rows", rows)
	}
}

// TestPublished holds the page on weaknesses of others to its word: each line names
// tests, those that have an id one that is named after it, and no two lines are of the same.
func TestPublished(t *testing.T) {
	rows := tables(t, "weaknesses.md", "What went wrong elsewhere")[0].rows
	said := map[string]bool{}
	for _, cells := range rows {
		id, held := cells[0], cells[len(cells)-1]
		if strings.HasPrefix(id, "GHSA-") {
			id = strings.ReplaceAll(id, "-", "_")
		} else if _, number, found := strings.Cut(id, "/"); found {
			id = number[strings.LastIndex(number, " ")+1:]
		} else {
			id = "Test"
		}
		if test := namedTest.FindString(held); !strings.Contains(test, id) {
			t.Errorf("%s: its test is %q", cells[0], test)
		}
		for i, cell := range cells {
			if cell == "" || i > 0 && said[cell] {
				t.Errorf("%s: a cell says nothing of its own: %q", cells[0], cell)
			}
			said[cell] = true
		}
	}
	if len(rows) < 19 {
		t.Errorf("the table has %d lines", len(rows))
	}
}

// TestOnceWrong holds the pages to their tables of what was once wrong: each line
// names the tests that would fail if it were so again, and no two lines say the same.
func TestOnceWrong(t *testing.T) {
	said := map[string]string{}
	for page, least := range map[string]int{"security.md": 20, "reliability.md": 20, "architecture.md": 10} {
		all := tables(t, page, "What was once wrong")
		if len(all) > 1 || len(all[0].rows) < least {
			t.Errorf("%s has %d tables, and the first %d lines", page, len(all), len(all[0].rows))
		}
		for _, cells := range all[0].rows {
			held := cells[len(cells)-1]
			if !namedTest.MatchString(held) {
				t.Errorf("%s: nothing holds %q, but %s", page, cells[0], held)
			}
			for _, again := range []string{cells[0], held} {
				if said[again] != "" {
					t.Errorf("%s says twice that %s", page, again)
				}
				said[again] = page
			}
		}
	}
}
