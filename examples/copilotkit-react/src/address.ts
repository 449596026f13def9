// What the page's address says: which runtime, and which thread. The thread stands there so that a
// page that is loaded again, or opened twice, is on the same one.

import { useEffect, useState } from "react";

const DEFAULT_RUNTIME = "http://127.0.0.1:4100/api/copilotkit";

/** `?runtimeUrl=…`, else `VITE_RUNTIME_URL` of when the page was built, else `agui serve` as it is. */
export const runtimeUrl =
  new URLSearchParams(location.search).get("runtimeUrl") ||
  import.meta.env.VITE_RUNTIME_URL ||
  DEFAULT_RUNTIME;

/** The agent of the chat; every runtime of `agui serve` has one of this name. */
export const AGENT = "default";

/** The thread in the address, and a way to another one: `undefined` begins a new one. */
export function useThread(): [string, (thread?: string) => void] {
  const [thread, setThread] = useState(() => threadInAddress() ?? begin());

  useEffect(() => {
    const read = () => setThread(threadInAddress() ?? begin());
    addEventListener("popstate", read);
    return () => removeEventListener("popstate", read);
  }, []);

  const go = (next: string = crypto.randomUUID()) => {
    history.pushState(null, "", addressOf(next));
    setThread(next);
  };
  return [thread, go];
}

const threadInAddress = () => new URLSearchParams(location.search).get("thread");

function begin() {
  const thread = crypto.randomUUID();
  history.replaceState(null, "", addressOf(thread));
  return thread;
}

function addressOf(thread: string) {
  const address = new URL(location.href);
  address.searchParams.set("thread", thread);
  return address;
}
