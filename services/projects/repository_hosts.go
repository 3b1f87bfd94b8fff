package projects

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmconfig"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// maxAtHost is the maximum number of repositories that one call changes at their host: hosts limit how much one
	// credential may create in an hour, and a call must end within the timeout of requests.
	maxAtHost = 100
	// hostCalls is the maximum number of repositories that are changed at the same time.
	hostCalls = 8
	// hostTimeout applies to the requests to hosts of one call. It is shorter than the default timeout of requests, so
	// that the answer can say what was done.
	hostTimeout = 45 * time.Second
)

// atHost is a repository at a connected host.
type atHost struct {
	*ent.Project
	host.Host
	// name is the repository's name at the host.
	name string
}

// openHosts opens the GitHub hosts of repositories, each connection once. Repositories without one are failures.
func (s *Changes) openHosts(ctx context.Context, rows []*ent.Project, failed failures) ([]atHost, error) {
	configs, err := s.store.Reader.ScmConfig.Query().Order(scmconfig.ByID()).All(ctx)
	if err != nil {
		return nil, err
	}
	opened, refused := map[int64]host.Host{}, map[int64]error{}
	var found []atHost
	for _, row := range rows {
		config, name, why := connect.Reached(configs, row)
		switch {
		case config == nil:
			failed.add(row.ID, &host.Error{Kind: host.Unsupported, Text: why})
			continue
		case !isGitHub(connect.TypeOf(config.Type)):
			failed.add(row.ID, &host.Error{Kind: host.Unsupported, Text: "GitHub Actions exist only at GitHub, and the repository is at a host of type " + config.Type})
			continue
		}
		if opened[config.ID] == nil && refused[config.ID] == nil {
			if opened[config.ID], err = s.hosts.Open(ctx, config); err != nil {
				if connect.ErrorText(err) == "" {
					return nil, err
				}
				refused[config.ID] = err
			}
		}
		if err := refused[config.ID]; err != nil {
			failed.add(row.ID, err)
			continue
		}
		found = append(found, atHost{row, opened[config.ID], name})
	}
	return found, nil
}

// eachAtHost calls do for each repository, some at the same time. After an error that says that the host accepts
// nothing more, the other repositories get the same error. do must be safe for concurrent use. Errors that are not the
// host's end the call.
func eachAtHost(ctx context.Context, list []atHost, do func(context.Context, atHost) error) (map[int64]error, error) {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	var mu sync.Mutex
	results, exhausted := make(map[int64]error, len(list)), map[host.Host]error{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(hostCalls)
	for _, one := range list {
		group.Go(func() error {
			mu.Lock()
			err := exhausted[one.Host]
			mu.Unlock()
			if err == nil {
				err = do(ctx, one)
			}
			mu.Lock()
			defer mu.Unlock()
			results[one.ID] = err
			if host.Is(err, host.RateLimited) || host.Is(err, host.Unauthorized) {
				exhausted[one.Host] = err
			}
			if err != nil && connect.ErrorText(err) == "" {
				return err
			}
			return nil
		})
	}
	return results, group.Wait()
}

// add records a host's error.
func (f failures) add(id int64, err error) {
	one := failure{projectsv1.UpdateErrorCode_UPDATE_ERROR_CODE_BAD_REQUEST, connect.ErrorText(err)}
	var of *host.Error
	if errors.As(err, &of) {
		switch of.Kind {
		case host.NotFound:
			one.code = projectsv1.UpdateErrorCode_UPDATE_ERROR_CODE_NOT_FOUND
		case host.Unauthorized, host.Forbidden:
			one.code = projectsv1.UpdateErrorCode_UPDATE_ERROR_CODE_UNAUTHORIZED
		case host.RateLimited, host.TimedOut, host.Unreachable, host.Failed:
			one.code = projectsv1.UpdateErrorCode_UPDATE_ERROR_CODE_CONFLICT
		}
	}
	f[one] = append(f[one], id)
}
