// Package slackapp talks to Slack as the operator's own app: the installation in a workspace, its channels, who presses
// a button, and replies. It does not use the database. Messages of notification rules are sent by package channel.
package slackapp
