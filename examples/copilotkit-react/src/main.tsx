import { createRoot } from "react-dom/client";

import "@copilotkit/react-core/v2/styles.css";
import { App } from "./App";
import "./page.css";

createRoot(document.getElementById("root")!).render(<App />);
