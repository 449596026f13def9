// A CopilotKit front end, as its documentation has it. Nothing in here knows what serves it.

import {
  CopilotChat,
  CopilotKitProvider,
  useConfigureSuggestions,
  useCopilotKit,
} from "@copilotkit/react-core/v2";
import { useState } from "react";

import { AGENT, runtimeUrl, useThread } from "./address";
import { useApproval } from "./approval";
import { searches } from "./search";
import { SharedState } from "./SharedState";
import { Threads } from "./Threads";
import { useTools, type Colour } from "./tools";

export function App() {
  const [problem, setProblem] = useState<string>();
  return (
    <CopilotKitProvider
      runtimeUrl={runtimeUrl}
      enableInspector={false}
      renderActivityMessages={ACTIVITIES}
      onError={({ error }) => setProblem(error.message)}
    >
      <Page problem={problem} dismiss={() => setProblem(undefined)} />
    </CopilotKitProvider>
  );
}

const ACTIVITIES = [searches];

function Page({ problem, dismiss }: { problem?: string; dismiss: () => void }) {
  const { copilotkit } = useCopilotKit();
  const [thread, goTo] = useThread();
  const [colour, setColour] = useState<Colour>("indigo");

  useTools(setColour);
  useApproval();
  useConfigureSuggestions({ suggestions: WORDS, available: "before-first-message" });

  return (
    <div className="page" data-colour={colour}>
      <Threads current={thread} goTo={goTo} />
      <main className="chat">
        <header>
          <strong>Say a word, and see what it shows</strong>
          <span className="quiet">
            {runtimeUrl} · {copilotkit.runtimeConnectionStatus}
          </span>
        </header>
        {problem && (
          <p className="problem" role="alert">
            {problem}
            <button onClick={dismiss}>Dismiss</button>
          </p>
        )}
        <div className="conversation">
          <CopilotChat agentId={AGENT} threadId={thread} />
        </div>
      </main>
      <SharedState />
    </div>
  );
}

/** Words of the demo agent; any other agent takes them as what they are. */
const WORDS = [
  { title: "Call its tools", message: "tools" },
  { title: "Call a tool of this page", message: "frontend" },
  { title: "Ask before it acts", message: "approval" },
  { title: "Share state", message: "state" },
  { title: "Think aloud", message: "reasoning" },
  { title: "Search", message: "activity" },
  { title: "Take its time", message: "slow 20" },
];
