import { expect, test } from "vitest";
import { withRoles } from "./roles";

test("names roles as people do", () => {
  const refusal = "the role ORG_ROLE_READONLY may not do this: it requires one of ORG_ROLE_ADMIN and ORG_ROLE_MEMBER";
  expect(withRoles(refusal)).toBe("the role Read-only may not do this: it requires one of Administrator and Member");
  expect(withRoles("the role ORG_ROLE_OWNER may not")).toBe("the role ORG_ROLE_OWNER may not");
});
