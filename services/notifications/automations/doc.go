// Package automations serves the automations of a deployment, and runs them and remediation policies
// (docs/automations.md, docs/policies.md).
//
// A transaction that stores a scan or a triage change enqueues one job (package outbox). The job evaluates all active
// automations of that trigger, and all policies that notify or triage, on the findings of the event. Once a day,
// another job evaluates these policies on open findings. Each candidate acts in one transaction, together with its
// entry in the run log, which is unique for the event: a job that is retried does nothing twice.
package automations
