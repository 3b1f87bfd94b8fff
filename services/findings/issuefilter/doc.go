// Package issuefilter turns the one filter message of the second API (issues.v1.IssuesFilter of the contract) into
// conditions on findings. It serves issues, AI tasks and memories alike.
//
// All of a filter becomes one statement: names are looked up by subqueries, each with the condition on the deployment
// that the policies of the schema do not put there. What the caller may see is limited by the policies of the query
// that the conditions are given to.
package issuefilter
