package management

import (
	"net/http"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

const (
	inTheFile = "settings are in the file that each controller is started with, and netkeep config print shows them"
	ended     = "API sessions are deleted instead, which counts at once on every controller: DELETE api-sessions/{id}, or identities/{id}/disable"
)

// mountLater adds what later versions of the contract have and is not here.
func mountLater(a *rest.API) {
	op := func(method, path, name string) rest.Op {
		return rest.Op{Method: method, Path: path, Name: name, Tag: "informational", Auth: rest.Admin, Need: "status:read"}
	}
	list := op("", "/controller-settings", "listControllerSettings")
	list.Doc = "List settings that are stored, of which there are none: " + inTheFile + "."
	api.MountNone(a, list)
	list = op("", "/revocations", "listRevocations")
	list.Doc = "List revocations of tokens, of which there are none: " + ended + "."
	api.MountNone(a, list)
	const effective = "/controller-settings/{id}/effective"
	api.MountElsewhere(a, []api.Elsewhere{
		{Op: op(http.MethodPost, "/controller-settings", "createControllerSetting"), Why: inTheFile},
		{Op: op(http.MethodGet, "/controller-settings/{id}", "detailControllerSetting"), Why: inTheFile},
		{Op: op(http.MethodGet, effective, "detailControllerSettingEffective"), Why: inTheFile},
		{Op: op(http.MethodPut, effective, "updateControllerSetting"), Why: inTheFile},
		{Op: op(http.MethodPatch, effective, "patchControllerSetting"), Why: inTheFile},
		{Op: op(http.MethodDelete, effective, "deleteControllerSetting"), Why: inTheFile},
		{Op: op(http.MethodPost, "/revocations", "createRevocation"), Why: ended},
		{Op: op(http.MethodGet, "/revocations/{id}", "detailRevocation"), Why: ended},
	})
}
