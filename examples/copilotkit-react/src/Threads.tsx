// The threads that the runtime keeps, newest first.

import { useAgent, useThreads, type Thread } from "@copilotkit/react-core/v2";
import { useEffect } from "react";

import { AGENT } from "./address";

interface Props {
  current: string;
  goTo: (thread?: string) => void;
}

export function Threads({ current, goTo }: Props) {
  const list = useThreads({ agentId: AGENT });
  const { agent } = useAgent({ agentId: AGENT, updates: [] });
  const { refetchThreads } = list;

  // Nobody tells the page of new threads, so it looks when a run of its own begins and ends.
  useEffect(() => {
    const subscription = agent.subscribe({
      onRunStartedEvent: refetchThreads,
      onRunFinalized: refetchThreads,
    });
    return () => subscription.unsubscribe();
  }, [agent, refetchThreads]);

  const rename = (thread: Thread) => {
    const name = prompt("Name of the thread", thread.name ?? "");
    if (name) void list.renameThread(thread.id, name);
  };
  const remove = async (thread: Thread) => {
    await list.deleteThread(thread.id);
    if (thread.id === current) goTo();
  };

  return (
    <nav className="threads" aria-label="Threads">
      <h1>agui</h1>
      <button className="new" onClick={() => goTo()}>
        New thread
      </button>
      {list.listError && <p className="problem">{list.listError.message}</p>}
      <ul>
        {list.threads.map((thread) => (
          <li key={thread.id} aria-current={thread.id === current ? "page" : undefined}>
            <button className="go" onClick={() => goTo(thread.id)}>
              {thread.name ?? thread.id.slice(0, 8)}
              <time dateTime={thread.updatedAt}>{when(thread.updatedAt)}</time>
            </button>
            <button title="Rename" onClick={() => rename(thread)}>
              ✎
            </button>
            <button title="Archive" onClick={() => void list.archiveThread(thread.id)}>
              ↓
            </button>
            <button title="Delete" onClick={() => void remove(thread)}>
              ×
            </button>
          </li>
        ))}
      </ul>
    </nav>
  );
}

const when = (time: string) =>
  new Date(time).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
