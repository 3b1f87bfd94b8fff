package triage

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/access"
)

// Permissions are what developers may do about findings, by issue type.
type Permissions struct {
	products *deploymentsv1.DeploymentProductConfig
}

// DeveloperPermissions reads the permissions of the deployment in the context.
func DeveloperPermissions(ctx context.Context, db *ent.Client) (Permissions, error) {
	row, err := db.Deployment.Query().Only(ctx)
	if err != nil {
		return Permissions{}, err
	}
	products, err := details.Products(row)
	return Permissions{products}, err
}

// Of returns the permission for an issue type. Issue types without a setting may be ignored.
func (p Permissions) Of(issueType string) deploymentsv1.TriagePermission {
	switch issueType {
	case vocabulary.SAST, vocabulary.AISAST:
		return p.products.GetSast().GetTriagePermission()
	case vocabulary.SCA:
		return p.products.GetSca().GetTriagePermission()
	case vocabulary.Secrets:
		return p.products.GetSecrets().GetTriagePermission()
	}
	return deploymentsv1.TriagePermission_TRIAGE_PERMISSION_IGNORE
}

// Ignores reports whether a state ignores findings, for good or provisionally. Developers need the same permission for
// both.
func Ignores(state string) bool {
	return state == lifecycle.Ignored || state == lifecycle.ProvisionallyIgnored
}

// Refusal says why developers may not put findings of an issue type into a state, or "". Only ignoring is limited.
func (p Permissions) Refusal(issueType, state string) string {
	permission := p.Of(issueType)
	if !Ignores(state) || permission == deploymentsv1.TriagePermission_TRIAGE_PERMISSION_IGNORE {
		return ""
	}
	advice := "ask an administrator"
	if p.MayRequest(issueType) {
		advice = "request an exception with PATCH /api/agent/deployments/{deploymentId}/findings/v2, or " + advice
	}
	return fmt.Sprintf("developers may not ignore %s findings of this deployment (its triagePermission is %s): %s", issueType, permission, advice)
}

// ApprovalIsOn reports whether developers request exceptions for findings of any product.
func (p Permissions) ApprovalIsOn() bool {
	return slices.ContainsFunc(vocabulary.Products, p.MayRequest)
}

// MayRequest reports whether developers request exceptions for findings of an issue type.
func (p Permissions) MayRequest(issueType string) bool {
	return p.Of(issueType) == deploymentsv1.TriagePermission_TRIAGE_PERMISSION_REQUEST
}

// Approvers is how the approvers of exceptions are mentioned at the host; empty if nobody is.
func (p Permissions) Approvers() string { return p.products.GetApproversTag() }

// RefuseDevelopers returns an error if the caller is a developer, a person or token with the role of a member, and may
// not put findings into the state.
func RefuseDevelopers(ctx context.Context, db *ent.Client, issueType, state string) error {
	if !ByDeveloper(ctx) || !Ignores(state) {
		return nil
	}
	permissions, err := DeveloperPermissions(ctx, db)
	if err != nil {
		return err
	}
	if refusal := permissions.Refusal(issueType, state); refusal != "" {
		return status.Error(codes.PermissionDenied, refusal)
	}
	return nil
}

// ByDeveloper reports whether the request comes from a person or token with the role of a member.
func ByDeveloper(ctx context.Context) bool {
	grant, ok := access.GrantFromContext(ctx)
	return ok && grant.Role == access.RoleMember
}
