package management

import (
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/rest"
)

// prepareGrant notes who makes a grant.
func prepareGrant(c *rest.Call, _ kind.Body, _ string) (rest.Prepared, error) {
	by := c.Author()
	return rest.Prepared{Set: func(rec kind.Record) {
		g := rec.(*model.Grant)
		g.GrantedBy, g.GrantedByID = by.Name, by.ID
	}}, nil
}
