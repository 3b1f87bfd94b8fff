package projects

import (
	"bytes"
	"context"
	"slices"
	"sync"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/projects/ciworkflow"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scm/host"
)

// provisionBranch is the branch of the pull request with the workflow.
const provisionBranch = "palisade/ci"

const (
	provisionTitle = "Scan with Semgrep in GitHub Actions"
	provisionText  = "This workflow scans the repository and sends the results to Palisade. It needs the secret " + ciworkflow.Secret +
		", a token that may send scans; an administrator of Palisade can add it together with this workflow.\n\n" +
		"Review it as any other change: it decides when the scan runs, and which code it sees."
)

// BulkProvisionRepos opens a pull request with the CI workflow in each repository.
func (s *Changes) BulkProvisionRepos(ctx context.Context, r *projectsv1.BulkProvisionReposRequest) (*projectsv1.BulkProvisionReposResponse, error) {
	workflow := workflowOf(r.GetGhaOptions())
	if workflow.Server == "" {
		workflow.Server = s.publicURL
	}
	if wrong := workflow.Check(); wrong != "" {
		return nil, apierr.InvalidArgument("ghaOptions.publishUrl", "publishUrl %s; got %s", wrong, apierr.Quote(workflow.Server))
	}
	rows, missing, err := choose(ctx, s.store.Reader, r.GetFilters(), r.GetExcludeIds(), maxAtHost)
	if err != nil {
		return nil, err
	}
	failed := failures{}
	list, err := s.openHosts(ctx, rows, failed)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	urls := make(map[int64]string, len(list))
	results, err := eachAtHost(ctx, list, func(ctx context.Context, at atHost) error {
		url, err := provision(ctx, at, workflow)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			urls[at.ID] = url
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for id, err := range results {
		if err != nil {
			failed.add(id, err)
		}
	}
	return &projectsv1.BulkProvisionReposResponse{RepoFileUrls: urls, Errors: slices.Concat(missing, failed.list())}, nil
}

func workflowOf(o *projectsv1.GhaOptions) ciworkflow.Options {
	return ciworkflow.Options{
		Server: o.GetPublishUrl(), PullRequests: o.GetPrEnabled(), Comments: o.GetPrSendComments(), Pushes: o.GetPushEnabled(), Daily: o.GetCronEnabled(),
		Branches: o.GetPushBranches(), Paths: o.GetPushPaths(), SelfHosted: o.GetUseSelfHostedRunners(),
	}
}

// provision returns the URL of the workflow on the default branch, or of the pull request that brings it.
func provision(ctx context.Context, at atHost, workflow ciworkflow.Options) (string, error) {
	base := gitref.Short(at.DefaultBranch)
	if base == "" {
		repository, err := at.Repository(ctx, at.name)
		if err != nil {
			return "", err
		}
		if base = repository.DefaultBranch; base == "" {
			return "", &host.Error{Kind: host.Unsupported, Text: "the repository has no commits yet"}
		}
	}
	content, err := workflow.Render(base, at.ID)
	if err != nil {
		return "", err
	}
	present, err := at.File(ctx, at.name, ciworkflow.Path, base)
	if err == nil && bytes.Equal(present, content) {
		return codehost.Plain(at.RepositoryURL) + "/blob/" + base + "/" + ciworkflow.Path, nil
	}
	if err != nil && !host.Is(err, host.NotFound) {
		return "", err
	}
	pull, err := at.Propose(ctx, at.name, host.Change{
		Base: base, Branch: provisionBranch, Path: ciworkflow.Path, Create: true, Content: content, Title: provisionTitle, Text: provisionText,
	})
	return pull.URL, err
}
