package deployments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/invitation"
	"github.com/palisade/palisade/ent/onboardingtask"
	"github.com/palisade/palisade/ent/user"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// Object kinds in the audit trail.
const (
	auditTask       = "onboarding_task"
	auditInvitation = "invitation"
)

// wholeDeployment is the user id of a step that belongs to the whole deployment.
const wholeDeployment = 0

// OnboardingChecklist is the service group "onboarding checklist".
type OnboardingChecklist struct {
	deploymentsv1.UnimplementedChecklistServiceServer
	store *store.Store
}

// NewOnboardingChecklist serves the onboarding checklist from the store.
func NewOnboardingChecklist(st *store.Store) *OnboardingChecklist {
	return &OnboardingChecklist{store: st}
}

// GetChecklistStatus returns all steps.
func (s *OnboardingChecklist) GetChecklistStatus(ctx context.Context, _ *deploymentsv1.GetChecklistStatusRequest) (*deploymentsv1.GetChecklistStatusResponse, error) {
	tasks, err := taskStates(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.GetChecklistStatusResponse{TaskStatus: tasks}, nil
}

// PatchChecklist stores the caller's state of steps. Marking a step as not done has no effect if the data shows it is
// done. Marking it as done takes effect, so that a deployment can skip steps.
func (s *OnboardingChecklist) PatchChecklist(ctx context.Context, r *deploymentsv1.PatchChecklistRequest) (*deploymentsv1.PatchChecklistResponse, error) {
	said, err := checkedTasks(ctx, r.GetTaskStatus())
	if err != nil {
		return nil, err
	}
	var tasks []*deploymentsv1.OnboardingTask
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		for _, task := range said {
			if err := storeTask(ctx, tx, task); err != nil {
				return err
			}
		}
		tasks, err = taskStates(ctx, tx.Client())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.PatchChecklistResponse{TaskStatus: tasks}, nil
}

// checkedTasks sets the levels of tasks and rejects tasks that the caller may not change.
func checkedTasks(ctx context.Context, tasks []*deploymentsv1.OnboardingTask) ([]*deploymentsv1.OnboardingTask, error) {
	grant, _ := access.GrantFromContext(ctx)
	said := make([]*deploymentsv1.OnboardingTask, len(tasks))
	seen := map[deploymentsv1.TaskType]bool{}
	for i, task := range tasks {
		field := fmt.Sprintf("taskStatus[%d]", i)
		if seen[task.GetType()] {
			return nil, apierr.InvalidArgument(field+".type", "%s.type: %s is in the list twice", field, task.GetType())
		}
		seen[task.GetType()] = true
		said[i] = &deploymentsv1.OnboardingTask{Type: task.GetType(), State: task.GetState(), Level: task.GetLevel()}
		if said[i].GetLevel() == deploymentsv1.TaskLevel_TASK_LEVEL_UNSPECIFIED {
			said[i].Level = levelOf(task.GetType())
		}
		if said[i].GetLevel() == deploymentsv1.TaskLevel_TASK_LEVEL_ORG && grant.Role != access.RoleAdmin {
			return nil, apierr.PermissionDenied("%s: the role %s may not change the state for the deployment, which requires the role %s: send %s to change your own state",
				field, grant.Role, access.RoleAdmin, deploymentsv1.TaskLevel_TASK_LEVEL_USER)
		}
	}
	return said, nil
}

// storeTask stores the caller's state of one step.
func storeTask(ctx context.Context, tx *ent.Tx, task *deploymentsv1.OnboardingTask) error {
	var userID int64 = wholeDeployment
	if principal, ok := access.FromContext(ctx); ok && task.GetLevel() == deploymentsv1.TaskLevel_TASK_LEVEL_USER {
		userID = principal.UserID
	}
	kind, state := task.GetType().String(), task.GetState().String()
	var before *deploymentsv1.OnboardingTask
	row, err := tx.OnboardingTask.Query().Where(onboardingtask.UserID(userID), onboardingtask.Type(kind)).Only(ctx)
	switch {
	case ent.IsNotFound(err):
	case err != nil:
		return err
	case row.State == state:
		return nil
	default:
		before = &deploymentsv1.OnboardingTask{
			Type: task.GetType(), State: deploymentsv1.TaskState(deploymentsv1.TaskState_value[row.State]), Level: task.GetLevel(),
		}
	}
	err = tx.OnboardingTask.Create().SetUserID(userID).SetType(kind).SetState(state).SetUpdatedAt(store.Now()).
		OnConflictColumns(onboardingtask.FieldDeploymentID, onboardingtask.FieldUserID, onboardingtask.FieldType).
		Update(func(u *ent.OnboardingTaskUpsert) { u.UpdateState().UpdateUpdatedAt() }).Exec(ctx)
	if err != nil {
		return err
	}
	if before == nil {
		audit.Change(ctx, auditTask, kind, nil, task)
		return nil
	}
	audit.Change(ctx, auditTask, kind, before, task)
	return nil
}

// InviteMembers creates invitations. Invited people join with AddDeploymentUser.
func (s *OnboardingChecklist) InviteMembers(ctx context.Context, r *deploymentsv1.InviteMembersRequest) (*deploymentsv1.InviteMembersResponse, error) {
	principal, _ := access.FromContext(ctx)
	emails := make([]string, len(r.GetEmails()))
	for i, email := range r.GetEmails() {
		emails[i] = strings.ToLower(email)
	}
	slices.Sort(emails)
	emails = slices.Compact(emails)
	var fresh, joined, open []string
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		if _, err := lock(ctx, s.store, tx); err != nil { // the second of two concurrent requests finds the address invited
			return err
		}
		rows, err := members(ctx, tx.Client(), 0, func(_ *sql.Selector, u *sql.SelectTable) *sql.Predicate {
			return store.In(u.C(user.FieldEmail), emails)
		})
		if err != nil {
			return err
		}
		joined = nil
		for _, row := range rows {
			joined = append(joined, row.Email)
		}
		open, err = tx.Invitation.Query().Where(store.OneOf(invitation.FieldEmail, emails), invitation.AcceptedAtIsNil()).
			Select(invitation.FieldEmail).Strings(ctx)
		if err != nil {
			return err
		}
		open = slices.DeleteFunc(open, func(email string) bool { return slices.Contains(joined, email) })
		fresh = slices.DeleteFunc(slices.Clone(emails), func(email string) bool {
			return slices.Contains(joined, email) || slices.Contains(open, email)
		})
		return invite(ctx, tx, fresh, principal.UserID)
	})
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.InviteMembersResponse{Message: fmt.Sprintf(
		"%d invited, %d invited already, %d members already. No e-mails were sent: tell them to sign in and to join deployment %d.",
		len(fresh), len(open), len(joined), r.GetDeploymentId())}, nil
}

// invite creates invitations. It replaces accepted ones of people who have left since.
func invite(ctx context.Context, tx *ent.Tx, emails []string, by int64) error {
	if len(emails) == 0 {
		return nil
	}
	if _, err := tx.Invitation.Delete().Where(store.OneOf(invitation.FieldEmail, emails)).Exec(ctx); err != nil {
		return err
	}
	for _, email := range emails {
		row, err := tx.Invitation.Create().SetEmail(email).SetInvitedBy(by).SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditInvitation, row.ID, nil, &deploymentsv1.InviteMembersRequest{DeploymentId: row.DeploymentID, Emails: []string{email}})
	}
	return nil
}
