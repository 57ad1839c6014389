package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/document"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Files is what some files want.
type Files struct {
	// Notes says what of the files does not count, and why.
	Notes []string

	records  map[*kind.Def]map[string]*wish // by key
	mistakes Mistakes
}

// wish is a record as a file wants it.
type wish struct {
	def  *kind.Def
	key  string
	file string
	said *value
	body body
}

// most is how many mistakes are told at once.
const most = 20

// Read reads files, and those of directories whose names end as those of YAML
// and JSON do; - is standard input. All mistakes that can be seen without a
// controller are told.
func Read(paths []string, stdin io.Reader) (*Files, error) {
	f := newFiles()
	for _, path := range paths {
		if path == "-" {
			if err := f.take("standard input", func() ([]byte, error) { return document.ReadFrom(stdin, maxFile) }); err != nil {
				return nil, fmt.Errorf("standard input: %w", err)
			}
			continue
		}
		names, err := filesIn(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := f.take(name, func() ([]byte, error) { return document.Read(name, maxFile) }); err != nil {
				return nil, err
			}
		}
	}
	return f, f.mistakes.asError()
}

// take adds a file that is yet to be read.
func (f *Files) take(file string, read func() ([]byte, error)) error {
	text, err := read()
	if much := new(document.Excess); errors.As(err, &much) {
		f.mistakes = append(f.mistakes, Mistake{File: file, Line: much.Line, Text: much.Reason})
		return nil
	}
	if err == nil {
		f.add(file, text)
	}
	return err
}

func newFiles() *Files {
	f := &Files{records: map[*kind.Def]map[string]*wish{}}
	for _, d := range kinds {
		f.records[d] = map[string]*wish{}
	}
	return f
}

// filesIn lists the files at a path, which may be one itself.
func filesIn(path string) (names []string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	err = filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(e.Name(), ".") && name != path
		switch {
		case err != nil:
			return err
		case e.IsDir() && hidden:
			return filepath.SkipDir
		case !e.IsDir() && !hidden && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)):
			names = append(names, name)
		}
		return nil
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s holds no file whose name ends in .yaml, .yml or .json; is it the right directory?", path)
	}
	return names, err
}

// add reads one file.
func (f *Files) add(file string, text []byte) {
	docs, err := parse(file, text)
	if err != nil {
		if again, bare := parse(file, withoutTalk(text)); bare == nil {
			docs, err = again, nil
		}
	}
	if err != nil {
		found := Mistakes{{File: file, Text: err.Error()}}
		errors.As(err, &found)
		f.mistakes = append(f.mistakes, found...)
		return
	}
	for _, doc := range docs {
		if doc.isNull() {
			continue
		}
		if !doc.isObject() {
			f.wrong(file, doc.spot, "a file holds kinds by their names, as in services: [{name: wiki}]")
			continue
		}
		var from dialect = ours{}
		if isForeign(doc) {
			from = &foreign{file: file, files: f}
		}
		for _, m := range doc.members {
			f.addKind(file, m, from)
		}
		f.Notes = append(f.Notes, from.notes()...)
	}
}

// wrong notes a mistake, as long as there are few.
func (f *Files) wrong(file string, at spot, format string, args ...any) {
	if len(f.mistakes) < most {
		f.mistakes = append(f.mistakes, Mistake{file, int(at.line), int(at.column), fmt.Sprintf(format, args...)})
	}
}

func (f *Files) addKind(file string, m member, from dialect) {
	d := from.kind(m.name)
	switch {
	case d == nil:
		var words []string
		for _, d := range kinds {
			words = append(words, d.Path, d.Name)
		}
		f.wrong(file, m.spot, "there is no kind %q that files may hold%s", m.name, meant(m.name, words))
		return
	case m.value.isNull():
		return
	case !m.value.list:
		f.wrong(file, m.value.spot, "%s must be a list", m.name)
		return
	}
	for _, item := range m.value.items {
		if !item.isObject() {
			f.wrong(file, item.spot, "%s must be a list of objects", m.name)
			continue
		}
		if from.tidy(d, item) {
			f.addRecord(file, d, item)
		}
	}
}

// addRecord takes what a file says of one record.
func (f *Files) addRecord(file string, d *kind.Def, said *value) {
	before := len(f.mistakes)
	f.checkNames(file, d.Fields, said, article(noun(d)))
	if len(f.mistakes) > before {
		return
	}
	w := &wish{def: d, file: file, said: said}
	settled, err := settle(d, said, usual()[d])
	if err != nil {
		f.refused(file, d, said, err)
		return
	}
	w.body = settled
	if w.key = said.said("name"); !named(d) {
		w.key = keyOfReferences(d, said)
	}
	if other := f.records[d][w.key]; other != nil {
		f.wrong(file, w.place(), "there are two %s %q; the other is at %s:%d", d.Path, w.key, other.file, other.place().line)
		return
	}
	f.records[d][w.key] = w
}

// place is where a record is spoken of: at its name, if it has one.
func (w *wish) place() spot {
	if name := w.said.member("name"); name != nil {
		return name.spot
	}
	return w.said.spot
}

// refused tells what a body breaks.
func (f *Files) refused(file string, d *kind.Def, said *value, err error) {
	e := new(fault.Error)
	if !errors.As(err, &e) {
		f.wrong(file, said.spot, "%v", err)
		return
	}
	name := ""
	if text := said.said("name"); text != "" && e.Field != "name" {
		name = fmt.Sprintf("%s %q: ", noun(d), text)
	}
	f.wrong(file, said.find(e.Field).spot, "%s%s %s", name, e.Field, e.Reason)
}

// checkNames looks for names that mean nothing.
func (f *Files) checkNames(file string, fields []*kind.Field, said *value, what string) {
	for _, m := range said.members {
		i := slices.IndexFunc(fields, func(f *kind.Field) bool { return f.Last() == m.name })
		if i < 0 || !settable(fields[i]) {
			f.unknown(file, fields, m, what, i >= 0)
			continue
		}
		switch field := fields[i]; {
		case field.Form == kind.Struct && m.value.isObject():
			f.checkNames(file, field.Members, m.value, what)
		case field.Form == kind.Structs:
			for _, item := range m.value.items {
				if item.isObject() {
					f.checkNames(file, field.Members, item, what)
				}
			}
		}
	}
}

func (f *Files) unknown(file string, fields []*kind.Field, m member, what string, known bool) {
	if known {
		f.wrong(file, m.spot, "the controller decides on %q of %s; leave it out", m.name, what)
		return
	}
	var names []string
	for _, field := range fields {
		if settable(field) {
			names = append(names, field.Last())
		}
	}
	f.wrong(file, m.spot, "%s has no %q%s", what, m.name, meant(m.name, names))
}
