package ai

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
)

// States of a fix.
const (
	fixRequested = "requested"
	fixOpened    = "opened"
	fixFailed    = "failed"
)

// inFlightTime is how long an ordered fix blocks another (contract facts 3.12, hasInFlightAutofixPr).
const inFlightTime = 10 * time.Minute

// blocker is the reason that blocks a fix. Both service groups have error words for it.
type blocker struct {
	kind aiv1.AutofixErrorType
	// archived, branch and provider are distinct only for fix jobs.
	archived, branch, provider bool
	text                       string
	config                     *ent.ScmConfig
}

func block(kind aiv1.AutofixErrorType, format string, args ...any) *blocker {
	return &blocker{kind: kind, text: fmt.Sprintf(format, args...)}
}

// fixes orders fixes.
type fixes struct {
	*Assistant
	jobs *jobs.Jobs
}

// fixOrder is a request for a fix.
type fixOrder struct {
	findingID int64
	// job is true for fix jobs, which require code on the primary branch.
	job bool
}

// order stores the order of a fix and enqueues it, unless something blocks it.
func (s *fixes) order(ctx context.Context, o fixOrder) (*blocker, error) {
	found, err := s.subject(ctx, o.findingID)
	if ent.IsNotFound(err) || err == nil && found.Status == lifecycle.Removed {
		return block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_ISSUE_NOT_FOUND, "finding %d not found", o.findingID), nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.checkAllowed(ctx, fixing); errors.Is(err, errOff) {
		h := block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_AUTOFIX_NOT_ENABLED, "%v", err)
		h.provider = errors.Is(err, errProvider)
		return h, nil
	} else if err != nil {
		return nil, err
	}
	if why := s.findingBlocker(found, o); why != nil {
		return why, nil
	}
	configs, err := s.connections(ctx)
	if err != nil {
		return nil, err
	}
	if why := s.connectionBlocker(configs, found.project); why != nil {
		return why, nil
	}
	var why *blocker
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		why, err = s.storeOrder(ctx, tx, found)
		return err
	})
	return why, err
}

// findingBlocker returns the blocker in the finding itself.
func (s *fixes) findingBlocker(found *subject, o fixOrder) *blocker {
	base, branch := strings.CutPrefix(found.Ref, "refs/heads/")
	primary := found.project.PrimaryBranch
	if primary == "" {
		primary = found.project.DefaultBranch
	}
	switch {
	case !aboutCode(found.IssueType) && (o.job || found.IssueType != "sca"):
		return block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_UNSUPPORTED_ISSUE_TYPE, "findings of type %s cannot be fixed by a change of code", found.IssueType)
	case found.IssueType == "sca" && len(found.content.GetFixRecommendations()) == 0:
		return block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_NO_RECOMMENDED_UPGRADE, "no version is known that fixes it")
	case found.IssueType == "sca" && !manifests[path.Base(found.content.GetLocation().GetFilePath())]:
		return block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_UNSUPPORTED_ISSUE_TYPE, "the dependency was found in no manifest that is written by hand: change the manifest and have the lockfile made again")
	case found.content.GetLocation().GetLine() < 1 || found.content.GetLocation().GetFilePath() == "":
		return block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_UNSUPPORTED_ISSUE_TYPE, "the finding names no line of a file")
	case found.Status != lifecycle.Open && found.Status != lifecycle.Reviewing && found.Status != lifecycle.Fixing:
		return block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_INVALID_ISSUE_STATE, "the finding is %s: only open ones are fixed", strings.ReplaceAll(found.Status, "_", " "))
	case !s.models.Configured():
		return block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_AUTOFIX_NOT_ENABLED, "no model is configured: set ai-url and ai-model")
	case found.project.ArchivedAt != nil:
		h := block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_INVALID_REPOSITORY, "the project %s is archived", found.project.Name)
		h.archived = true
		return h
	case !branch || base == "" || o.job && primary != "" && found.Ref != primary:
		h := block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_INVALID_REPOSITORY, "the finding is on %s: a pull request needs a finding on a branch, a fix job one on the primary branch", found.Ref)
		h.branch = true
		return h
	case found.project.RepositoryURL == "":
		_, _, why := connect.Reached(nil, found.project)
		return block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_INVALID_REPOSITORY, "%s", why)
	}
	return nil
}

// manifests are hand-written files that declare dependency versions.
var manifests = map[string]bool{
	"package.json": true, "go.mod": true, "requirements.txt": true, "pyproject.toml": true, "pom.xml": true, "build.gradle": true,
	"build.gradle.kts": true, "Gemfile": true, "Cargo.toml": true, "composer.json": true, "pubspec.yaml": true, "mix.exs": true,
}

// connectionBlocker returns the blocker in the connection.
func (s *fixes) connectionBlocker(configs []*ent.ScmConfig, row *ent.Project) *blocker {
	config, _, why := s.connectionFor(configs, row)
	kind, blocked := map[aiv1.AnalysisFailureReason]aiv1.AutofixErrorType{
		aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_NO_SCM_CONFIGURED: aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_SCM_CONFIG_NOT_FOUND,
		aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_SCM_NOT_SUPPORTED: aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_SCM_CONFIG_NOT_FOUND,
		aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_SCM_DISCONNECTED:  aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_SCM_TOKEN_FAILED,
		aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_NO_CODE_ACCESS:    aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_CODE_ACCESS_NOT_GRANTED,
	}[why.reason]
	if blocked {
		return &blocker{kind: kind, text: why.text, config: config}
	}
	if scopes := scopesOf(config); scopes != nil && (!scopes.GetWriteContents() || !scopes.GetWritePullRequest()) {
		return &blocker{kind: aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_NO_WRITE_ACCESS, config: config,
			text: "the credential of the connection to " + config.Namespace + " may not push, or not open pull requests"}
	}
	return nil
}

// storeOrder stores the order, if no other fix is in progress and the quota allows it.
func (s *fixes) storeOrder(ctx context.Context, tx *ent.Tx, found *subject) (*blocker, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	if err := s.lockQuota(ctx, tx, deploymentID); err != nil {
		return nil, err
	}
	waiting, err := tx.AiFix.Query().Where(aifix.FindingID(found.ID), aifix.Status(fixRequested),
		aifix.RequestedAtGT(store.Micros(time.Now().Add(-inFlightTime)))).Exist(ctx)
	if err != nil {
		return nil, err
	}
	open, err := tx.Finding.Query().Where(finding.ID(found.ID), finding.ClickToFixState("open")).Exist(ctx)
	if err != nil {
		return nil, err
	}
	if waiting || open {
		return block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_IN_FLIGHT_FIX_PENDING, "a fix of finding %d is on its way, or its pull request is open", found.ID), nil
	}
	used, err := s.usage(ctx, tx.Client(), deploymentID)
	if err != nil {
		return nil, err
	}
	if err := used.check(1, s.monthly); err != nil {
		return block(aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_CREDITS_EXHAUSTED, "the quota of analyses is used up: %d of %d this month, %d of %d this hour",
			used.month, s.monthly, used.hour, hourly), nil
	}
	create := tx.AiFix.Create().SetFindingID(found.ID).SetStatus(fixRequested).SetActorKind("").SetActorID(0).SetRequestedAt(store.Now())
	if p, ok := access.FromContext(ctx); ok {
		create.SetActorKind(string(p.Kind)).SetActorID(p.ID)
	}
	row, err := create.Save(ctx)
	if err != nil {
		return nil, err
	}
	audit.Change(ctx, "ai_fix", row.ID, nil, &findingsv1.BulkTriageResponse{TriagedIssues: []int64{found.ID}})
	return nil, s.jobs.Enqueue(ctx, fixArgs{DeploymentID: deploymentID, FixID: row.ID}, nil)
}

// refusedFix is the error of fix jobs for blockers without an error type.
func refusedFix(h *blocker) error {
	switch h.kind {
	case aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_ISSUE_NOT_FOUND:
		return apierr.NotFound("%s", h.text)
	case aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_IN_FLIGHT_FIX_PENDING:
		return apierr.Conflict("%s", h.text)
	}
	return apierr.FailedPrecondition("%s", h.text)
}
