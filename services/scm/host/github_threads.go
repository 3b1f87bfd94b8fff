package host

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/go-github/v84/github"
)

// CommentOnLine comments on the newer side of the diff.
func (h *gitHub) CommentOnLine(ctx context.Context, repository string, request PullRequest, at Line, text string) (Thread, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return Thread{}, err
	}
	comment, response, err := h.client.PullRequests.CreateComment(ctx, owner, name, int(request.Number), &github.PullRequestComment{
		Body: &text, CommitID: &request.Commit, Path: &at.Path, Line: github.Ptr(int(at.Line)), Side: github.Ptr("RIGHT"),
	})
	if response != nil && response.StatusCode == http.StatusUnprocessableEntity && isOutside(err.Error(), "pull_request_review_thread", "part of the diff") {
		return Thread{}, &Error{Kind: Outside, Text: "the pull request does not change this line", cause: err}
	}
	if err != nil {
		return Thread{}, gitHubError(err)
	}
	return gitHubThread(comment)
}

// isOutside reports whether a host's refusal is about the place of a comment.
func isOutside(text string, signs ...string) bool {
	for _, sign := range signs {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

func gitHubThread(first *github.PullRequestComment) (Thread, error) {
	if first.GetID() == 0 {
		return Thread{}, malformed("the host's answer is not a review comment of GitHub", nil)
	}
	return Thread{ID: strconv.FormatInt(first.GetID(), 10), Note: first.GetID()}, nil
}

// FindThread reads the review comments, the oldest first.
func (h *gitHub) FindThread(ctx context.Context, repository string, number int64, text string) (Thread, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return Thread{}, err
	}
	pages := paged(func(page int) ([]*github.PullRequestComment, int, error) {
		list, response, err := h.client.PullRequests.ListComments(ctx, owner, name, int(number), &github.PullRequestListCommentsOptions{
			ListOptions: github.ListOptions{Page: page, PerPage: pageSize},
		})
		if err != nil {
			return nil, 0, gitHubError(err)
		}
		return list, nextComments(page, response.NextPage), nil
	})
	for comment, err := range pages {
		if err != nil {
			return Thread{}, err
		}
		if comment.GetInReplyTo() == 0 && strings.Contains(comment.GetBody(), text) {
			return gitHubThread(comment)
		}
	}
	return Thread{}, nil
}

// EditThread replaces the text of the comment.
func (h *gitHub) EditThread(ctx context.Context, repository string, _ int64, thread Thread, text string) error {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return err
	}
	_, err = gitHubAnswer(h.client.PullRequests.EditComment(ctx, owner, name, thread.Note, &github.PullRequestComment{Body: &text}))
	return err
}

const (
	// findThreads reads the threads of a pull request with the id of their first comment.
	findThreads = `query($owner: String!, $name: String!, $number: Int!, $after: String) {
	repository(owner: $owner, name: $name) { pullRequest(number: $number) { reviewThreads(first: 100, after: $after) {
		pageInfo { hasNextPage endCursor }
		nodes { id isResolved comments(first: 1) { nodes { databaseId } } }
	} } } }`
	resolveThread   = `mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`
	unresolveThread = `mutation($id: ID!) { unresolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`
)

// ResolveThread uses GraphQL: the REST API knows no threads.
func (h *gitHub) ResolveThread(ctx context.Context, repository string, number int64, thread Thread, resolved bool) error {
	id, done, err := h.threadNode(ctx, repository, number, thread.Note)
	if err != nil || done == resolved {
		return err
	}
	mutation := unresolveThread
	if resolved {
		mutation = resolveThread
	}
	var changed map[string]struct{ Thread struct{ IsResolved *bool } }
	if err := h.graphQL(ctx, mutation, map[string]any{"id": id}, &changed); err != nil {
		return err
	}
	for _, answer := range changed {
		if is := answer.Thread.IsResolved; is != nil && *is == resolved {
			return nil
		}
	}
	return malformed("the host did not change the state of the review thread", nil)
}

// threadNode finds the node id of the thread that begins with a comment.
func (h *gitHub) threadNode(ctx context.Context, repository string, number, note int64) (id string, resolved bool, err error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return "", false, err
	}
	variables := map[string]any{"owner": owner, "name": name, "number": number}
	for range maxCommentPages {
		var found struct {
			Repository struct {
				PullRequest struct {
					ReviewThreads struct {
						PageInfo *struct {
							HasNextPage bool
							EndCursor   string
						}
						Nodes []struct {
							ID         string
							IsResolved bool
							Comments   struct{ Nodes []struct{ DatabaseID int64 } }
						}
					}
				}
			}
		}
		if err := h.graphQL(ctx, findThreads, variables, &found); err != nil {
			return "", false, err
		}
		threads := found.Repository.PullRequest.ReviewThreads
		if threads.PageInfo == nil || threads.Nodes == nil {
			return "", false, malformed("the host's answer is not a list of review threads of GitHub", nil)
		}
		for _, one := range threads.Nodes {
			first := one.Comments.Nodes
			if one.ID == "" || first == nil || len(first) > 0 && first[0].DatabaseID == 0 {
				return "", false, malformed("the host's answer is not a review thread of GitHub", nil)
			}
			if len(first) > 0 && first[0].DatabaseID == note {
				return one.ID, one.IsResolved, nil
			}
		}
		if !threads.PageInfo.HasNextPage {
			break
		}
		variables["after"] = threads.PageInfo.EndCursor
	}
	return "", false, &Error{Kind: NotFound, Text: "GitHub has no review thread with the comment " + strconv.FormatInt(note, 10)}
}

// graphQL sends a query. GitHub answers with status 200 and a list of errors.
func (h *gitHub) graphQL(ctx context.Context, query string, variables map[string]any, into any) error {
	at := "graphql"
	if strings.HasSuffix(h.client.BaseURL.Path, "/api/v3/") {
		at = "../graphql" // GitHub Enterprise
	}
	request, err := h.client.NewRequest(http.MethodPost, at, map[string]any{"query": query, "variables": variables})
	if err != nil {
		return gitHubError(err)
	}
	answer := struct {
		Data   any
		Errors []struct{ Type, Message string }
	}{Data: into}
	if _, err := h.client.Do(ctx, request, &answer); err != nil {
		return gitHubError(err)
	}
	if len(answer.Errors) == 0 {
		return nil
	}
	first := answer.Errors[0]
	switch first.Type {
	case "NOT_FOUND":
		return refusal(http.StatusNotFound, printable(first.Message), nil)
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		return refusal(http.StatusForbidden, printable(first.Message), nil)
	}
	return refusal(http.StatusUnprocessableEntity, printable(first.Message), nil)
}
