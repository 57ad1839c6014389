package rest

import (
	"net/http"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
)

// OverrideParam says that a change is meant though an assertion is against it. Every
// operation of an API that lets anybody say so has it, if it may write.
var OverrideParam = ChoiceParam("override",
	"Whether to make the change though it breaks an assertion; the audit log tells of it. It is refused if not given, and false is the same.",
	strings.EqualFold, "true", "false")

// overridable gives an operation that may write the parameter.
func (a *API) overridable(o *operation) {
	if a.Override != nil && o.Auth == Admin && o.Method != http.MethodGet {
		o.Params = append(slices.Clip(o.Params), OverrideParam)
	}
}

// override has the writes of a request say that they are meant, if it says so and its
// caller may.
func (c *Call) override() error {
	if !slices.Contains(c.op.Params, Parameter(OverrideParam)) || OverrideParam.Of(c) != "true" {
		return nil
	}
	if err := c.api.Override(c); err != nil {
		return err
	}
	c.request = c.request.WithContext(state.Overriding(c.request.Context()))
	return nil
}
