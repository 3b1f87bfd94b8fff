package deployments

import (
	"context"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/invitation"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/notificationwebhook"
	"github.com/palisade/palisade/ent/onboardingtask"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/remediationpolicy"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/access"
)

// step defines how the state of one task is determined.
type step struct {
	task deploymentsv1.TaskType
	// afterScan: the task is locked before the first scan.
	afterScan bool
	// done finds the task's result in the deployment's data; nil if the data does not show it.
	done func(ctx context.Context, db *ent.Client, d *ent.Deployment) (bool, error)
}

// steps are all tasks, in the order of TaskType. The first scan comes before the tasks that it unlocks.
var steps = []step{
	{task: deploymentsv1.TaskType_TASK_TYPE_COMPLETE_TOUR},
	{task: deploymentsv1.TaskType_TASK_TYPE_SCAN_CODE, done: scanned},
	{task: deploymentsv1.TaskType_TASK_TYPE_TRIAGE_FIRST_PARTY, afterScan: true, done: triaged("sast", "ai_sast")},
	{task: deploymentsv1.TaskType_TASK_TYPE_TRIAGE_DEPENDENCY, afterScan: true, done: triaged("sca")},
	{task: deploymentsv1.TaskType_TASK_TYPE_SET_UP_RECURRING_SCAN, done: scannedAgain},
	{task: deploymentsv1.TaskType_TASK_TYPE_CONFIGURE_IGNORES},
	{task: deploymentsv1.TaskType_TASK_TYPE_JOIN_SLACK},
	{task: deploymentsv1.TaskType_TASK_TYPE_CUSTOMIZE_RULES, done: rulesCustomized},
	{task: deploymentsv1.TaskType_TASK_TYPE_ENABLE_INTEGRATION, done: integrated},
	{task: deploymentsv1.TaskType_TASK_TYPE_ADD_TEAM_MEMBER, done: shared},
	{task: deploymentsv1.TaskType_TASK_TYPE_WRITE_CUSTOM_RULE},
	{task: deploymentsv1.TaskType_TASK_TYPE_SETUP_SCM_PROVIDER, done: hostConnected},
	{task: deploymentsv1.TaskType_TASK_TYPE_ENABLE_ASSISTANT, done: aiEnabled},
	{task: deploymentsv1.TaskType_TASK_TYPE_ENABLE_SEMGREP_MULTIMODAL, done: aiEnabled},
}

// levelOf returns whether a task belongs to the user or the deployment.
func levelOf(task deploymentsv1.TaskType) deploymentsv1.TaskLevel {
	switch task {
	case deploymentsv1.TaskType_TASK_TYPE_COMPLETE_TOUR, deploymentsv1.TaskType_TASK_TYPE_JOIN_SLACK:
		return deploymentsv1.TaskLevel_TASK_LEVEL_USER
	}
	return deploymentsv1.TaskLevel_TASK_LEVEL_ORG
}

// taskStates determines the states of all steps for the caller. Each takes a query that stops at the first row, and
// none if the step is marked as done. The queries cover the whole deployment, independent of the caller's teams.
func taskStates(ctx context.Context, db *ent.Client) ([]*deploymentsv1.OnboardingTask, error) {
	d, err := db.Deployment.Query().Only(ctx)
	if err != nil {
		return nil, err
	}
	said, err := markedDone(ctx, db)
	if err != nil {
		return nil, err
	}
	system := tenant.System(ctx)
	tasks := make([]*deploymentsv1.OnboardingTask, len(steps))
	done := map[deploymentsv1.TaskType]bool{}
	for i, s := range steps {
		done[s.task] = said[s.task.String()]
		locked := s.afterScan && !done[deploymentsv1.TaskType_TASK_TYPE_SCAN_CODE]
		if !done[s.task] && !locked && s.done != nil {
			if done[s.task], err = s.done(system, db, d); err != nil {
				return nil, err
			}
		}
		state := deploymentsv1.TaskState_TASK_STATE_INCOMPLETE
		switch {
		case done[s.task]:
			state = deploymentsv1.TaskState_TASK_STATE_COMPLETE
		case locked:
			state = deploymentsv1.TaskState_TASK_STATE_LOCKED
		}
		tasks[i] = &deploymentsv1.OnboardingTask{Type: s.task, State: state, Level: levelOf(s.task)}
	}
	return tasks, nil
}

// markedDone returns the tasks marked as done, for the deployment or by the caller.
func markedDone(ctx context.Context, db *ent.Client) (map[string]bool, error) {
	users := []int64{wholeDeployment}
	if principal, ok := access.FromContext(ctx); ok {
		users = append(users, principal.UserID)
	}
	words, err := db.OnboardingTask.Query().
		Where(onboardingtask.UserIDIn(users...), onboardingtask.State(deploymentsv1.TaskState_TASK_STATE_COMPLETE.String())).
		Select(onboardingtask.FieldType).Strings(ctx)
	said := make(map[string]bool, len(words))
	for _, word := range words {
		said[word] = true
	}
	return said, err
}

func scanned(ctx context.Context, db *ent.Client, d *ent.Deployment) (bool, error) {
	return db.Scan.Query().Where(scan.DeploymentID(d.ID)).Exist(ctx)
}

// scannedAgain: managed scans are enabled, or a project has a second scan.
func scannedAgain(ctx context.Context, db *ent.Client, d *ent.Deployment) (bool, error) {
	managed, err := db.Project.Query().
		Where(project.DeploymentID(d.ID), project.Or(project.ManagedDiffScan(true), project.ManagedFullScan(true))).Exist(ctx)
	if err != nil || managed {
		return managed, err
	}
	return db.Scan.Query().Where(scan.DeploymentID(d.ID), func(s *sql.Selector) {
		other := sql.Table(scan.Table).As("other")
		s.Where(sql.Exists(sql.Select(other.C(scan.FieldID)).From(other).Where(sql.And(
			sql.EQ(other.C(scan.FieldDeploymentID), d.ID),
			sql.ColumnsEQ(other.C(scan.FieldProjectID), s.C(scan.FieldProjectID)),
			sql.ColumnsNEQ(other.C(scan.FieldID), s.C(scan.FieldID)),
		))))
	}).Exist(ctx)
}

// triaged: a person triaged a finding of these types. Findings suppressed in code have the same status as ignored ones,
// so the triage state decides.
func triaged(issueTypes ...string) func(context.Context, *ent.Client, *ent.Deployment) (bool, error) {
	return func(ctx context.Context, db *ent.Client, d *ent.Deployment) (bool, error) {
		return db.Finding.Query().Where(finding.DeploymentID(d.ID), finding.IssueTypeIn(issueTypes...),
			finding.StatusIn(lifecycle.Ignored, lifecycle.Reviewing, lifecycle.Fixing),
			finding.TriageStateNEQ(lifecycle.Untriaged)).Exist(ctx)
	}
}

// rulesCustomized: a finding has a mode of its rule, or a remediation policy is active.
func rulesCustomized(ctx context.Context, db *ent.Client, d *ent.Deployment) (bool, error) {
	found, err := db.Finding.Query().Where(finding.DeploymentID(d.ID), finding.PolicyModeNotNil()).Exist(ctx)
	if err != nil || found {
		return found, err
	}
	return db.RemediationPolicy.Query().Where(remediationpolicy.DeploymentID(d.ID), remediationpolicy.Active(true)).Exist(ctx)
}

func integrated(ctx context.Context, db *ent.Client, d *ent.Deployment) (bool, error) {
	rule, err := db.NotificationRule.Query().Where(notificationrule.DeploymentID(d.ID)).Exist(ctx)
	if err != nil || rule {
		return rule, err
	}
	return db.NotificationWebhook.Query().Where(notificationwebhook.DeploymentID(d.ID)).Exist(ctx)
}

// shared: there is a second member or an invitation.
func shared(ctx context.Context, db *ent.Client, d *ent.Deployment) (bool, error) {
	two, err := db.Membership.Query().Where(membership.DeploymentID(d.ID)).Limit(2).IDs(ctx)
	if err != nil || len(two) == 2 {
		return err == nil, err
	}
	return db.Invitation.Query().Where(invitation.DeploymentID(d.ID), invitation.AcceptedAtIsNil()).Exist(ctx)
}

func hostConnected(ctx context.Context, db *ent.Client, d *ent.Deployment) (bool, error) {
	return db.ScmConfig.Query().Where(scmconfig.DeploymentID(d.ID), scmconfig.CheckOk(true)).Exist(ctx)
}

func aiEnabled(_ context.Context, _ *ent.Client, d *ent.Deployment) (bool, error) {
	products, err := details.Stored(d) // differs from the default: a person has changed it
	return products.GetAi().GetEnabled(), err
}
