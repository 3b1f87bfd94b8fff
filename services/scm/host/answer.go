package host

import (
	"reflect"

	"github.com/google/go-github/v84/github"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// checkAnswer rejects an answer without content. For null, {} and an empty body the clients return nil or an empty
// object, and no error.
func checkAnswer[T any](answer *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	if answer == nil || reflect.ValueOf(answer).Elem().IsZero() {
		return nil, malformed("the host's answer is empty: check type and baseUrl", nil)
	}
	return answer, nil
}

// checkList rejects a list that is missing, and one with items without content. A list without items is not nil.
func checkList[T any](items []*T, err error) ([]*T, error) {
	if err == nil && items == nil {
		err = malformed("the host's answer has no list: check type and baseUrl", nil)
	}
	for i := 0; err == nil && i < len(items); i++ {
		_, err = checkAnswer(items[i], nil)
	}
	if err != nil {
		return nil, err
	}
	return items, nil
}

// gitHubAnswer and its siblings take the results of a client's call.
func gitHubAnswer[T any](answer *T, _ *github.Response, err error) (*T, error) {
	return checkAnswer(answer, gitHubError(err))
}

func gitHubIssueAnswer(answer *github.Issue, _ *github.Response, err error) (*github.Issue, error) {
	return checkAnswer(answer, gitHubIssueError(err))
}

func appAnswer[T any](answer *T, _ *github.Response, err error) (*T, error) {
	return checkAnswer(answer, appError(err))
}

func gitHubList[T any](items []*T, _ *github.Response, err error) ([]*T, error) {
	return checkList(items, gitHubError(err))
}

func gitLabAnswer[T any](answer *T, _ *gitlab.Response, err error) (*T, error) {
	return checkAnswer(answer, gitLabError(err))
}

func gitLabList[T any](items []*T, _ *gitlab.Response, err error) ([]*T, error) {
	return checkList(items, gitLabError(err))
}
