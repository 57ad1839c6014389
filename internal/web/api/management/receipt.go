package management

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/rest"
)

// changesID is what lists of changes may be called by whoever sends them.
var changesID = regexp.MustCompile(`^[A-Za-z0-9_-]{8,64}$`)

func checkChangesID(id string) error {
	if changesID.MatchString(id) {
		return nil
	}
	return fault.Invalid("id", "must be 8 to 64 letters, digits, - and _", id)
}

// settledOut says what became of a list of changes.
type settledOut struct {
	ID   string `json:"id" doc:"The id that was asked for."`
	Made bool   `json:"made" doc:"Whether the changes were made, all of them; if not, none was, and none will be under this id."`
}

// mountSettle offers to find out what became of a list of changes whose answer was
// lost. It is a write, and so it waits for those that are under way.
func mountSettle(a *rest.API) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/changes/{id}/settle", Name: "settleChanges", Tag: "changes",
		Doc:  "Find out whether the changes with an id were made. If not, they cannot be made any more. What became of changes is known for a day.",
		Auth: rest.Admin, Need: rest.AnyPower,
	}, func(c *rest.Call, _ rest.None) (out settledOut, err error) {
		id := c.Param("id")
		if err := checkChangesID(id); err != nil {
			return out, err
		}
		out.ID = id
		return out, c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) (err error) {
			out.Made, err = model.Settle(tx, id)
			return err
		})
	})
}

const (
	// mostNamed is how many changes a line of the log names, and mostLetters how
	// much of each name.
	mostNamed   = 20
	mostLetters = 64
)

// tell says in the log what a list of changes did, or would do.
func (l *list) tell(log *slog.Logger, by state.Author, in changesIn) {
	word := "made changes"
	if !l.out.Applied {
		word = "planned changes"
	}
	counts, named := map[string]int{}, []string{}
	for _, c := range l.out.Changes {
		if counts[c.Kind+" "+c.Outcome]++; len(named) < mostNamed && c.Outcome != unchanged {
			named = append(named, c.Kind+" "+clip(cmp.Or(c.Name, c.ID))+" "+c.Outcome)
		}
	}
	totals := make([]string, 0, len(counts))
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		totals = append(totals, fmt.Sprint(counts[what], " ", what))
	}
	log.Info(word, "by", by.String(), "name", by.Name, "id", in.ID, "changes", len(l.out.Changes), "counts", strings.Join(totals, ", "),
		"first", named, "consequences", len(l.out.Consequences), "gained", l.out.Access.Gained, "lost", l.out.Access.Lost)
}

// clip shortens a name.
func clip(name string) string {
	if letters := []rune(name); len(letters) > mostLetters {
		return string(letters[:mostLetters]) + "…"
	}
	return name
}
