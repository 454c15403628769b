import "@fontsource-variable/figtree/index.css";
import "@fontsource-variable/fraunces/index.css";
