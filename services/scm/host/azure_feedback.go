package host

import (
	"context"
	"net/http"
	"slices"
	"strconv"
)

// azureGenre groups our statuses. Branch policies name a status by genre and name.
const azureGenre = "palisade"

// SetStatus sets a status of the pull request for the iteration whose head is the commit, because branch policies read
// only that one; without a pull request, of the commit.
func (h *azure) SetStatus(ctx context.Context, repository, commit string, status Status) error {
	at, err := azureRepositoryOf(repository)
	if err != nil {
		return err
	}
	if !safeRef(commit) {
		return errAzureName(commit)
	}
	type statusContext struct {
		Name  string `json:"name"`
		Genre string `json:"genre"`
	}
	wanted := struct {
		State       string        `json:"state"`
		Description string        `json:"description"`
		TargetURL   string        `json:"targetUrl"`
		Context     statusContext `json:"context"`
		IterationID int           `json:"iterationId,omitempty"`
	}{status.word("succeeded", "failed", "pending"), status.Text, status.URL, statusContext{status.Name, azureGenre}, 0}
	path := at.git("/commits/" + commit + "/statuses")
	if status.Number != 0 {
		iterations, err := h.iterations(ctx, at, status.Number)
		if err != nil {
			return err
		}
		head := slices.IndexFunc(iterations, func(i *azureIteration) bool { return i.SourceRefCommit.CommitID == commit })
		if head < 0 {
			return &Error{Kind: Failed, Text: "Azure DevOps has no iteration of the pull request with the commit " + clip(commit) + " yet: try again later"}
		}
		path, wanted.IterationID = at.pull(status.Number, "/statuses"), iterations[head].ID
	}
	var made struct {
		ID    int64
		State string
	}
	if err := h.call(ctx, http.MethodPost, path, nil, wanted, &made); err != nil {
		return err
	}
	if made.State == "" {
		return malformed("the host's answer is not a status of Azure DevOps", nil)
	}
	return nil
}

// FindComment reads the threads of the pull request that are on no file.
func (h *azure) FindComment(ctx context.Context, repository string, number int64, text string) (string, error) {
	threads, err := h.threads(ctx, repository, number)
	if err != nil {
		return "", err
	}
	for _, thread := range threads {
		if thread.ThreadContext == nil && thread.has(text) {
			return thread.id(), nil
		}
	}
	return "", nil
}

// Comment begins a thread on no file. It is closed, because a branch policy may require that all threads are resolved.
func (h *azure) Comment(ctx context.Context, repository string, number int64, text string) (string, error) {
	at, err := azureRepositoryOf(repository)
	if err != nil {
		return "", err
	}
	made, err := h.begin(ctx, at, number, azureNewThread{Comments: []azureNewComment{{Content: text, CommentType: "text"}}, Status: "closed"})
	if err != nil {
		return "", err
	}
	return made.id(), nil
}

// EditComment replaces the text of the first comment of a thread.
func (h *azure) EditComment(ctx context.Context, repository string, number int64, id, text string) error {
	return h.editFirst(ctx, repository, number, id, text)
}

func (h *azure) editFirst(ctx context.Context, repository string, number int64, id, text string) error {
	at, thread, err := azureThreadAt(repository, id)
	if err != nil {
		return err
	}
	made := &azureComment{}
	path := at.pull(number, "/threads/"+thread+"/comments/"+strconv.Itoa(azureFirst))
	if err := h.call(ctx, http.MethodPatch, path, nil, azureNewComment{Content: text}, made); err != nil {
		return err
	}
	return made.check()
}

// azureThreadAt checks the names of a repository and of a thread.
func azureThreadAt(repository, id string) (azurePlace, string, error) {
	at, err := azureRepositoryOf(repository)
	if err != nil {
		return at, "", err
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 {
		return at, "", &Error{Kind: NotFound, Text: "Azure DevOps has no thread " + strconv.Quote(clip(id)), cause: err}
	}
	return at, strconv.FormatInt(n, 10), nil
}
