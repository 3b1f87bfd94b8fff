import { Link } from "@tanstack/react-router";
import { Page } from "@/parts/page";
import * as texts from "@/texts";

/** An address that no screen has. Below an organization it stands inside the frame. */
export function NotFound() {
  const { states } = texts.shell;
  return (
    <Page title={states.notFoundTitle}>
      <p className="text-muted">{states.notFoundPage}</p>
      <p className="mt-2"><Link to="/" className="text-accent underline">{states.backToTriage}</Link></p>
    </Page>
  );
}
