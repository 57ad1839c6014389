package model_test

import (
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// TestAdminRoleCheck wants bad roles refused with the reason and the nearest right
// thing.
func TestAdminRoleCheck(t *testing.T) {
	for _, try := range []struct {
		role model.AdminRole
		says string // empty if it is a good one
	}{
		{model.AdminRole{Allows: []string{"service:read", "config:*", "*:read"}}, ""},
		{model.AdminRole{Allows: []string{"*"}}, ""},
		{model.AdminRole{Allows: []string{"*:*"}}, ""},
		{model.AdminRole{Allows: []string{"service:*"}, OnlyAttributes: []string{"web"}}, ""},
		{model.AdminRole{Allows: []string{"service-policy:read"}, OnlyTags: map[string]string{"team": "web"}}, ""},
		{model.AdminRole{Allows: []string{"service:raed"}}, "service:read"},
		{model.AdminRole{Allows: []string{"servise:read"}}, "service:read"},
		{model.AdminRole{Allows: []string{"service:remove"}}, "service:delete"},
		{model.AdminRole{Allows: []string{"service"}}, "what:verb"},
		{model.AdminRole{Allows: []string{"link:create"}}, "link:read"},
		{model.AdminRole{Allows: []string{"service-policy:update"}, OnlyAttributes: []string{"web"}}, "cannot be limited"},
		{model.AdminRole{Allows: []string{"grant:create"}, OnlyTags: map[string]string{"team": "web"}}, "cannot be limited"},
		{model.AdminRole{Allows: []string{"*"}, OnlyTags: map[string]string{"team": "web"}}, "cannot be limited"},
		{model.AdminRole{Allows: []string{"service:read"}, OnlyAttributes: []string{"#web"}}, "without #"},
		{model.AdminRole{Allows: []string{"service:read"}, OnlyTags: map[string]string{"": "web"}}, "names of tags"},
		{model.AdminRole{Allows: []string{"cluster:invite"}}, "leads to all power"},
		{model.AdminRole{Allows: []string{"cluster:*"}}, "leads to all power"},
	} {
		err := try.role.Check(nil, nil)
		if (err == nil) != (try.says == "") || err != nil && !strings.Contains(err.Error(), try.says) {
			t.Errorf("%v, only %v %v: %v", try.role.Allows, try.role.OnlyAttributes, try.role.OnlyTags, err)
		}
	}
}

// TestAdminRoleAbout has roles that are limited look at records.
func TestAdminRoleAbout(t *testing.T) {
	web := &model.AdminRole{OnlyAttributes: []string{"web"}, OnlyTags: map[string]string{"team": "a", "live": "true"}}
	tags := map[string]any{"team": "a", "live": true}
	for _, try := range []struct {
		def   *kind.Def
		rec   kind.Record
		about bool
	}{
		{model.Services.Def, &model.Service{Meta: kind.Meta{Tags: tags}, RoleAttributes: []string{"web", "x"}}, true},
		{model.Services.Def, &model.Service{Meta: kind.Meta{Tags: tags}, RoleAttributes: []string{"x"}}, false},
		{model.Services.Def, &model.Service{RoleAttributes: []string{"web"}}, false},
		{model.Services.Def, &model.Service{Meta: kind.Meta{Tags: map[string]any{"team": "a", "live": nil}}, RoleAttributes: []string{"web"}}, false},
		{model.Configs.Def, &model.Config{Meta: kind.Meta{Tags: tags}}, false}, // which has no attributes
	} {
		if got := web.About(try.def, try.rec); got != try.about {
			t.Errorf("it is about %v: %v", try.rec, got)
		}
	}
}

// TestPowers wants the words of powers to be sorted and to expand to themselves.
func TestPowers(t *testing.T) {
	if !slices.IsSorted(model.Powers) || len(slices.Compact(slices.Clone(model.Powers))) != len(model.Powers) {
		t.Error("powers are not sorted, or there twice")
	}
	for _, p := range model.Powers {
		if all := model.Expand(p); len(all) != 1 || all[0] != p {
			t.Errorf("%s expands to %v", p, all)
		}
	}
	if len(model.Expand("*")) != len(model.Powers) || len(model.Expand("*:*")) != len(model.Powers) || model.Expand("") != nil || model.Expand("*:nothing") != nil {
		t.Error("stars stand for something else")
	}
}
