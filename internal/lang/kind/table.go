package kind

import (
	"slices"
	"strings"
	"unicode"
)

// TableColumn is a column of a table of records, whoever draws it.
type TableColumn struct {
	Head   string
	Path   string // of the member of an answer that is shown
	Member string // that an answer must hold for it
	Field  *Field // that it shows; nil if it is derived
}

// Table lists the columns that a table of the kind shows. A wide one has all that
// is a value, after those that the kind names.
func (d *Def) Table(wide bool) []TableColumn {
	names := d.Columns
	if wide {
		names = append(slices.Clone(names), "id", "createdAt", "updatedAt", "tags")
		for _, f := range d.Fields {
			if !f.Secret && !f.Hidden && f.As == "" && len(f.Members) == 0 {
				names = append(names, f.Shown())
			}
		}
	}
	var cols []TableColumn
	for _, name := range names {
		col := d.tableColumn(name)
		if !slices.ContainsFunc(cols, func(c TableColumn) bool { return c.Path == col.Path || c.Head == col.Head }) {
			cols = append(cols, col)
		}
	}
	return cols
}

// tableColumn is the column that a kind names: the path of a member, and after
// " as " what it is called if not the same.
func (d *Def) tableColumn(name string) TableColumn {
	path, head, ok := strings.Cut(name, " as ")
	if !ok {
		head = Heading(path)
	}
	col := TableColumn{Head: head, Path: path, Field: d.Field(path)}
	if col.Field != nil && col.Field.Roles != "" {
		col.Path += "Display"
	}
	col.Member, _, _ = strings.Cut(col.Path, ".")
	return col
}

// Field returns the field with a name, nil if there is none.
func (d *Def) Field(name string) *Field {
	for _, f := range d.Fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Heading is what a member is called above its values: isAdmin is about being an
// admin.
func Heading(path string) string {
	parts := strings.Split(path, ".")
	if len(parts) > 2 {
		parts = parts[len(parts)-2:]
	}
	var words []string
	for _, part := range parts {
		words = append(words, strings.Split(Dashed(part), "-")...)
	}
	if len(words) > 1 && (words[0] == "is" || words[0] == "has") {
		words = words[1:]
	}
	switch text := strings.Join(words, " "); text {
	case "role attributes":
		return "roles"
	default:
		return text
	}
}

// Dashed writes a member's name in words with dashes between them:
// "roleAttributes" as "role-attributes".
func Dashed(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) {
			// A word begins, unless it goes on in capitals.
			if i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
				b.WriteByte('-')
			}
			r = unicode.ToLower(r)
		}
		if r == '.' {
			r = '-'
		}
		b.WriteRune(r)
	}
	return b.String()
}
