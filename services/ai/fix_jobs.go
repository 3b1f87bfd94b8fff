package ai

import (
	"context"
	"strconv"

	"github.com/palisade/palisade/ent"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	"github.com/palisade/palisade/services/internal/jobs"
)

// FixJobs is the service group "AI fix jobs".
type FixJobs struct {
	aiv1.UnimplementedAiFixJobsServiceServer
	fixes
}

// NewFixJobs serves fix jobs; queue holds them.
func NewFixJobs(a *Assistant, queue *jobs.Jobs) *FixJobs {
	return &FixJobs{fixes: fixes{Assistant: a, jobs: queue}}
}

// CreateFixJob orders a fix, or returns what blocks it.
func (s *FixJobs) CreateFixJob(ctx context.Context, r *aiv1.CreateFixJobRequest) (*aiv1.CreateFixJobResponse, error) {
	why, err := s.order(ctx, fixOrder{findingID: r.GetIssueId(), job: true})
	if err != nil {
		return nil, err
	}
	if why == nil {
		return &aiv1.CreateFixJobResponse{Success: true}, nil
	}
	kind, ok := fixJobErrors[why.kind]
	switch {
	case !ok:
		return nil, refusedFix(why)
	case why.archived:
		kind = aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_ARCHIVED_REPOSITORY
	case why.provider:
		kind = aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_AI_PROVIDER_NOT_ALLOWED
	case why.branch:
		kind = aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_NON_PRIMARY_BRANCH_DISABLED
	}
	app, err := s.app(ctx, why.config)
	if err != nil {
		return nil, err
	}
	return &aiv1.CreateFixJobResponse{Errors: []*aiv1.FixJobError{{ErrorType: kind, Message: why.text, GithubAppInfo: app}}}, nil
}

// fixJobErrors maps blockers to the error types of fix jobs. Other blockers reject the request.
var fixJobErrors = map[aiv1.AutofixErrorType]aiv1.FixJobErrorType{
	aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_UNSUPPORTED_ISSUE_TYPE:  aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_UNSUPPORTED_ISSUE_TYPE,
	aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_AUTOFIX_NOT_ENABLED:     aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_AUTOFIX_DISABLED,
	aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_INVALID_REPOSITORY:      aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_INVALID_REPOSITORY,
	aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_NO_WRITE_ACCESS:         aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_NO_WRITE_ACCESS,
	aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_SCM_CONFIG_NOT_FOUND:    aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_SCM_CONFIG_NOT_FOUND,
	aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_SCM_TOKEN_FAILED:        aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_SCM_TOKEN_FAILED,
	aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_CODE_ACCESS_NOT_GRANTED: aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_CODE_ACCESS_NOT_GRANTED,
	aiv1.AutofixErrorType_AUTOFIX_ERROR_TYPE_CREDITS_EXHAUSTED:       aiv1.FixJobErrorType_FIX_JOB_ERROR_TYPE_CREDITS_EXHAUSTED,
}

// app returns the application that needs other permissions; nil if the connection has none.
func (s *FixJobs) app(ctx context.Context, config *ent.ScmConfig) (*aiv1.GitHubAppInfo, error) {
	if config == nil || config.ScmAppID == nil {
		return nil, nil
	}
	row, err := s.store.Reader.ScmApp.Get(ctx, *config.ScmAppID)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	id, _ := strconv.ParseInt(row.AppID, 10, 64) // 0 until the application is registered
	info := &aiv1.GitHubAppInfo{AppId: id, AppName: row.Name, InstallationTarget: row.Namespace}
	if row.InstallationID != "" {
		info.ConfigUrl = row.BaseURL + "/organizations/" + row.Namespace + "/settings/installations/" + row.InstallationID
	}
	return info, nil
}
