import { type ErrorComponentProps, useRouter } from "@tanstack/react-router";
import { Failure } from "@/parts/states";

/** What a route shows that could not load. Trying again loads it again. */
export function RouteFailure({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const again = () => {
    reset();
    void router.invalidate();
  };
  return <Failure error={error} retry={again} />;
}
