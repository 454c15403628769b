import "@fontsource-variable/figtree/index.css";
import "@fontsource-variable/fraunces/index.css";
import "../../src/tertulia/wire/assets/tokens.css";
import "./design/base.css";
import "./design/content.css";
import { mount } from "svelte";
import Root from "./Root.svelte";

mount(Root, { target: document.getElementById("app")! });
