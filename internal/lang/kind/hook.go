package kind

import (
	"fmt"
	"reflect"
)

// hooks are the methods of a kind's struct that take part in writes, and in how
// records are kept.
type hooks struct {
	fill    func(next Record)
	check   func(r Reader, old, next Record) error
	guard   func(r Reader, old Record) error
	saved   func(w Writer, old, next Record) error
	deleted func(w Writer, old Record) error
	whole   func(r Reader, old, next Record) error
	ranked  func(rec Record) (group, place string)
}

// hooksOf finds the methods of *T that Spec describes. They are looked up and
// not passed in because kinds refer to each other in them, which Go does not
// allow in the initializers of variables.
func hooksOf[T any]() (h hooks) {
	found := map[string]bool{}
	var zero any = (*T)(nil)
	if _, ok := zero.(interface{ Fill() }); ok {
		found["Fill"] = true
		h.fill = func(next Record) { any(next).(interface{ Fill() }).Fill() }
	}
	if _, ok := zero.(interface{ Check(Reader, *T) error }); ok {
		found["Check"] = true
		h.check = func(r Reader, old, next Record) error {
			return any(next).(interface{ Check(Reader, *T) error }).Check(r, pointer[T](old))
		}
	}
	if _, ok := zero.(interface{ Guard(Reader) error }); ok {
		found["Guard"] = true
		h.guard = func(r Reader, old Record) error { return any(old).(interface{ Guard(Reader) error }).Guard(r) }
	}
	if _, ok := zero.(interface{ Saved(Writer, *T) error }); ok {
		found["Saved"] = true
		h.saved = func(w Writer, old, next Record) error {
			return any(next).(interface{ Saved(Writer, *T) error }).Saved(w, pointer[T](old))
		}
	}
	if _, ok := zero.(interface{ Deleted(Writer) error }); ok {
		found["Deleted"] = true
		h.deleted = func(w Writer, old Record) error { return any(old).(interface{ Deleted(Writer) error }).Deleted(w) }
	}
	if _, ok := zero.(interface{ Whole(Reader, *T) error }); ok {
		found["Whole"] = true
		h.whole = func(r Reader, old, next Record) error {
			return any(next).(interface{ Whole(Reader, *T) error }).Whole(r, pointer[T](old))
		}
	}
	if _, ok := zero.(interface{ Ranked() (group, place string) }); ok {
		found["Ranked"] = true
		h.ranked = func(rec Record) (group, place string) {
			return any(rec).(interface{ Ranked() (group, place string) }).Ranked()
		}
	}
	// A method with the right name and the wrong signature would be a rule
	// that silently never runs.
	for _, name := range []string{"Fill", "Check", "Guard", "Saved", "Deleted", "Whole", "Ranked"} {
		if _, has := reflect.TypeFor[*T]().MethodByName(name); has && !found[name] {
			panic(fmt.Sprintf("kind: method %s of %s has the wrong signature", name, reflect.TypeFor[T]()))
		}
	}
	return h
}

// pointer returns the typed record, nil for none.
func pointer[T any](rec Record) *T {
	if rec == nil {
		return nil
	}
	return any(rec).(*T)
}
