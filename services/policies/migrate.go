package policies

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	auditMigration = "policies_migration"
	// undoFor is how long a migration can be undone.
	undoFor = 30 * 24 * time.Hour
)

// MigratePolicies migrates the deployment to detection policies, or undoes that.
func (s *PoliciesV2) MigratePolicies(ctx context.Context, r *policiesv1.MigratePoliciesRequest) (*policiesv1.MigratePoliciesResponse, error) {
	response := &policiesv1.MigratePoliciesResponse{}
	if r.GetDryRun() {
		organization, err := s.store.Reader.Deployment.Query().Only(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := migrated(organization, r.GetUndo()); err != nil {
			return nil, err
		}
		response, err = migration(ctx, s.store.Reader, organization.PoliciesMigratedAt)
		if response.GetMigrated() == r.GetUndo() {
			response.Migrated, response.MigratedAt, response.UndoUntil = !r.GetUndo(), nil, nil
		}
		return response, err
	}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		organization, err := s.store.LockDeployment(ctx, tx)
		if err != nil {
			return err
		}
		at, err := migrated(organization, r.GetUndo())
		if err != nil {
			return err
		}
		if response, err = migration(ctx, tx.Client(), at); err != nil || (at == nil) == (organization.PoliciesMigratedAt == nil) {
			return err
		}
		before, err := migration(ctx, tx.Client(), organization.PoliciesMigratedAt)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditMigration, organization.ID, before, response)
		update := tx.Deployment.UpdateOne(organization)
		if at == nil {
			return update.ClearPoliciesMigratedAt().Exec(ctx)
		}
		return update.SetPoliciesMigratedAt(*at).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// migrated returns when the deployment has migrated, after the call. A repeated call changes nothing.
func migrated(organization *ent.Deployment, undo bool) (*int64, error) {
	at := organization.PoliciesMigratedAt
	switch {
	case undo && at != nil && store.Time(*at).Add(undoFor).Before(time.Now()):
		return nil, apierr.FailedPrecondition("the deployment migrated more than %d days ago: that cannot be undone", int(undoFor/(24*time.Hour)))
	case undo:
		return nil, nil
	case at != nil:
		return at, nil
	}
	now := store.Now()
	return &now, nil
}

// migration describes the state of a deployment that migrated at a time; nil: it has not.
func migration(ctx context.Context, db *ent.Client, at *int64) (*policiesv1.MigratePoliciesResponse, error) {
	response := &policiesv1.MigratePoliciesResponse{Migrated: at != nil}
	if at != nil {
		response.MigratedAt, response.UndoUntil = timestamppb.New(store.Time(*at)), timestamppb.New(store.Time(*at).Add(undoFor))
	}
	boards, err := db.Ruleboard.Query().Count(ctx)
	if err != nil {
		return nil, err
	}
	assigned, err := db.RuleboardProject.Query().Count(ctx)
	response.Ruleboards, response.AssignedProjects = int32(boards), int32(assigned) //nolint:gosec // at most maxBoards, and projects
	response.RetiredOperations, response.RetiredOperationsForTokens = retired(optionsv1.Retired_RETIRED_ALL), retired(optionsv1.Retired_RETIRED_TOKENS)
	return response, err
}

// retired returns the operations that a migration retires, sorted.
func retired(kind optionsv1.Retired) (names []string) {
	for _, file := range []protoreflect.FileDescriptor{policiesv1.File_palisade_policies_v1_policies_proto, policiesv1.File_palisade_policies_v1_ruleboards_proto} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				rule, ok := proto.GetExtension(method.Options(), optionsv1.E_Rule).(*optionsv1.MethodRule)
				if ok && rule.GetRetired() == kind {
					names = append(names, string(service.Name())+"/"+string(method.Name()))
				}
			}
		}
	}
	slices.Sort(names)
	return names
}
