package ai

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmconfig"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

// connections reads the deployment's source-code host connections.
func (a *Assistant) connections(ctx context.Context) ([]*ent.ScmConfig, error) {
	return a.store.Reader.ScmConfig.Query().Order(ent.Asc(scmconfig.FieldID)).All(ctx)
}

// accessError is the reason why code cannot be read. The reason UNSPECIFIED means that it can.
type accessError struct {
	reason aiv1.AnalysisFailureReason
	text   string
}

// connectionFor returns the connection through which a project's code can be read.
func (a *Assistant) connectionFor(configs []*ent.ScmConfig, row *ent.Project) (config *ent.ScmConfig, repository string, why accessError) {
	config, repository, missing := connect.Reached(configs, row)
	if config == nil {
		return nil, "", accessError{aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_NO_SCM_CONFIGURED, missing}
	}
	kind := scmv1.ScmType(scmv1.ScmType_value[config.Type])
	switch scopes := scopesOf(config); {
	case !slices.Contains(host.Supported, kind):
		why = accessError{aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_SCM_NOT_SUPPORTED,
			fmt.Sprintf("code at hosts of type %s cannot be read yet", config.Type)}
	case connect.Suspended(config):
		why = accessError{aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_SCM_DISCONNECTED,
			"the source-code host has suspended the connection to " + config.Namespace}
	case len(config.AccessToken) == 0 && config.ScmAppID == nil:
		why = accessError{aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_SCM_DISCONNECTED,
			"the connection to " + config.Namespace + " has no credential: set its accessToken"}
	case config.CheckedAt != nil && !config.CheckOk:
		why = accessError{aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_SCM_DISCONNECTED,
			"the connection to " + config.Namespace + " did not work at its last check: " + config.CheckError}
	case scopes != nil && !scopes.GetReadContents():
		why = accessError{aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_NO_CODE_ACCESS,
			"the credential of the connection to " + config.Namespace + " may not read code"}
	}
	return config, repository, why
}

// scopesOf returns the credential's scopes; nil before the first check.
func scopesOf(config *ent.ScmConfig) *scmv1.ScmTokenScopes {
	scopes := &scmv1.ScmTokenScopes{}
	if config.CheckedAt == nil || proto.Unmarshal(config.TokenScopes, scopes) != nil {
		return nil
	}
	return scopes
}

// file reads the lines of a file at a branch or commit.
func (a *Assistant) file(ctx context.Context, config *ent.ScmConfig, repository, path, ref string) (lines []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	h, err := a.hosts.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	content, err := h.File(ctx, repository, path, ref)
	if err != nil {
		return nil, err
	}
	return strings.Split(string(content), "\n"), nil
}
