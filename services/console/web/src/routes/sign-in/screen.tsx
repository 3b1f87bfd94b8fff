import { useQuery } from "@tanstack/react-query";
import { LogIn } from "lucide-react";
import { useEffect } from "react";
import { basePath } from "@/api/base";
import { readJSON } from "@/api/client";
import { CopyButton } from "@/parts/copy";
import { Failure, Loading } from "@/parts/states";
import * as texts from "@/texts";
import { endedOf, hostOf, loginAddress } from "./address";

const { signIn } = texts;

/** What the server offers. It is the only answer that needs no session. */
const optionsQuery = {
  queryKey: ["sign-in"],
  queryFn: () => readJSON<{ issuer: string }>(`${basePath}/auth/options`),
};

/** The page in front of everything: with the identity provider, or with a one-time link. */
export default function SignIn() {
  const { data, error, refetch } = useQuery(optionsQuery);
  const ended = endedOf(window.location.search);
  useEffect(() => {
    document.title = `${signIn.title} · ${texts.shell.product}`;
  }, []);
  return (
    <main className="flex min-h-dvh items-center justify-center p-4">
      <div className="w-full max-w-sm">
        <div className="mb-6 flex flex-col items-center gap-3 text-center">
          <img src={`${basePath}/console/icon.svg`} alt="" className="size-11" />
          <div>
            <h1 className="text-xl font-semibold tracking-tight">{texts.shell.product}</h1>
            <p className="mt-1 text-muted">{signIn.lead}</p>
          </div>
        </div>
        {ended && <p role="status" className="mb-4 rounded-md border border-line bg-raised px-4 py-3 text-center text-balance">{ended === "decision" ? signIn.endedUnsaved : signIn.ended}</p>}
        <div className="rounded-lg border border-line bg-surface p-5">
          {error ? <Failure error={error} retry={() => void refetch()} /> : data ? <Ways issuer={data.issuer} /> : <Loading />}
        </div>
      </div>
    </main>
  );
}

function Ways({ issuer }: { issuer: string }) {
  return (
    <>
      {issuer && (
        <div className="mb-5 border-b border-line pb-5">
          <a
            href={loginAddress(basePath, window.location.search)}
            className="flex min-h-10 items-center justify-center gap-2 rounded-md bg-accent px-3 font-semibold text-accent-ink hover:opacity-90"
          >
            <LogIn size={16} aria-hidden />
            <span className="truncate">{signIn.withProvider(hostOf(issuer))}</span>
          </a>
          <p className="mt-2 text-center text-xs text-balance text-muted">{signIn.providerHint}</p>
        </div>
      )}
      <h2 className="text-[0.8125rem] font-semibold">{issuer ? signIn.linkTitleElse : signIn.linkTitle}</h2>
      <p className="mt-1 text-[0.8125rem] text-muted">{signIn.linkHint}</p>
      <div className="mt-3 flex items-center gap-2 rounded-md border border-line bg-sunken py-1 pr-1 pl-3">
        <code className="grow overflow-x-auto font-mono text-xs whitespace-nowrap">{signIn.command}</code>
        <CopyButton text={signIn.command} />
      </div>
      {!issuer && <p className="mt-3 text-xs text-muted">{signIn.providerSetUp}</p>}
    </>
  );
}
