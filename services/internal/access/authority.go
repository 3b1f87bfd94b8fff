package access

import (
	"slices"

	"github.com/palisade/palisade/ent"
)

// authority decides what an API token may do now: what its own role allows, and no more than the present role of its
// creator. The creator does not limit a token that belongs to the deployment.
type authority struct {
	role, creator Role // creator is empty for a person who is not a member of the deployment
	ofDeployment  bool
}

// orphaned reports that the token may do nothing, because its creator may do nothing.
func (a authority) orphaned() bool {
	return !a.ofDeployment && !slices.Contains(Roles, a.creator)
}

// now returns the role with which the token acts now; empty for none.
func (a authority) now() Role {
	switch {
	case a.orphaned():
		return ""
	case !a.ofDeployment && slices.Contains(Roles, a.role) && slices.Index(Roles, a.role) < slices.Index(Roles, a.creator):
		return a.creator
	default:
		return a.role
	}
}

// OfDeployment reports whether a token belongs to its deployment.
func OfDeployment(row *ent.Token) bool {
	return belongsToDeployment(row.UserID, row.HandedOverAt != nil, row.ProjectID != nil)
}

// belongsToDeployment: a token belongs to its deployment if a command of the server created it, if an administrator
// handed it over, or if no creator is known. So does the token of a project's CI: its creator never sees the value, and
// it only sends scans of this project.
func belongsToDeployment(creator int64, handedOver, ofCI bool) bool {
	return creator == 0 || handedOver || ofCI
}

// RoleNow returns the role with which a token acts now; empty for none. creator is the present role of its creator in
// the deployment, empty for none.
func RoleNow(row *ent.Token, creator Role) Role {
	return authority{role: Role(row.Role), creator: creator, ofDeployment: OfDeployment(row)}.now()
}
